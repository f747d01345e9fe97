// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/tls_probe.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "openssl.hpp"

namespace eigenveil::federation {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{2000};

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// False when the time is up.
bool wait_for(int descriptor, short what, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one{descriptor, what, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<long long>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

/// An errno; 0 if connected.
int connect_within(int descriptor, const addrinfo& to) {
  if (::connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(descriptor, POLLOUT, Clock::now() + kPatience)) return ETIMEDOUT;
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size);
  return failure;
}

struct Address {
  std::string host;
  std::string port;
};

std::optional<Address> split(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return {};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return Address{host, address.substr(colon + 1)};
}

std::string closes_at_once(const std::string& address) {
  return fmt::format("{} closes connections before TLS begins: it speaks no TLS, or what is behind it is down",
                     address);
}

/// A connected socket, or the fault in words.
std::variant<Socket, std::string> open_socket(const std::string& address) {
  const auto parts = split(address);
  if (!parts) return fmt::format("the address '{}' is not of the form host:port", address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(parts->host.c_str(), parts->port.c_str(), &hints, &list) != 0)
    return fmt::format("the host name '{}' is unknown here", parts->host);
  const std::unique_ptr<addrinfo, Freed<::freeaddrinfo>> owner(list);
  int failure = EHOSTUNREACH;
  for (const addrinfo* to = list; to != nullptr; to = to->ai_next) {
    Socket socket(::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    failure = socket.get() < 0 ? errno : connect_within(socket.get(), *to);
    if (failure == 0) return socket;
  }
  if (failure == ECONNREFUSED) return fmt::format("nobody listens at {} (connection refused)", address);
  if (failure == ECONNRESET) return closes_at_once(address);
  if (failure == ETIMEDOUT)
    return fmt::format("no answer from {} within {} s: is a firewall between?", address, kPatience.count() / 1000);
  return fmt::format("{} cannot be reached ({})", address, std::generic_category().message(failure));
}

enum class Step { kDone, kTimeout, kClosed, kFailed };

/// TLS over memory that we carry to and from the socket ourselves: OpenSSL's own socket raises SIGPIPE.
class TlsConnection {
 public:
  TlsConnection(SSL_CTX* context, const Socket& socket) : ssl_(SSL_new(context)), socket_(socket.get()) {
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_.get(), in_, out_);
  }

  SSL* get() const { return ssl_.get(); }

  /// Repeats an operation of OpenSSL until it is done or cannot be.
  template <class Operation>
  Step run(Operation operation) {
    const auto until = Clock::now() + kPatience;
    for (;;) {
      ERR_clear_error();
      const int result = operation(ssl_.get());
      const int why = SSL_get_error(ssl_.get(), result);
      const bool sent = send_all(until);  // an alert of ours too
      if (result > 0) return Step::kDone;
      if (why == SSL_ERROR_ZERO_RETURN) return Step::kClosed;
      if (why != SSL_ERROR_WANT_READ) return Step::kFailed;
      // A peer that refuses closes its end while we write; what it said before is still to be read.
      if (!sent && write_failed_) return Step::kClosed;
      write_failed_ = !sent;
      const Step got = receive(until);
      if (got != Step::kDone) return got;
    }
  }

 private:
  bool send_all(Clock::time_point until) {
    char bytes[4096];
    for (int size = 0; (size = BIO_read(out_, bytes, sizeof bytes)) > 0;) {
      for (int sent = 0; sent < size;) {
        const auto now = ::send(socket_, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (now >= 0)
          sent += static_cast<int>(now);
        else if (errno != EINTR && !(errno == EAGAIN && wait_for(socket_, POLLOUT, until)))
          return false;
      }
    }
    return true;
  }

  Step receive(Clock::time_point until) {
    char bytes[4096];
    for (;;) {
      if (!wait_for(socket_, POLLIN, until)) return Step::kTimeout;
      const auto got = ::recv(socket_, bytes, sizeof bytes, 0);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return Step::kClosed;
      BIO_write(in_, bytes, static_cast<int>(got));
      return Step::kDone;
    }
  }

  ConnectionPtr ssl_;
  BIO* in_ = nullptr;  // ssl_ owns both
  BIO* out_ = nullptr;
  int socket_;
  bool write_failed_ = false;
};

/// The alert that the other side sent, as TLS numbers them; 0 if it sent none.
int last_alert() {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  return reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256 ? reason - SSL_AD_REASON_OFFSET : 0;
}

bool about_our_certificate(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_DECRYPT_ERROR:
      return true;
    default:
      return false;
  }
}

/// Who should be there.
struct Expected {
  std::string authority;
  std::string name;
  std::string key_hash;
};

/// Our own credentials, as the connection needs them.
struct Ours {
  ContextPtr context;
  StorePtr store;
  CertificatePtr certificate;
};

std::variant<Ours, std::string> our_side(const std::string& ca_pem, const std::string& certificate_pem,
                                         const std::string& key_pem) {
  Ours ours{ContextPtr(SSL_CTX_new(TLS_client_method())), store_from(ca_pem), certificate_from(certificate_pem)};
  const KeyPtr key = key_from(key_pem);
  if (!ours.context) return "OpenSSL cannot start on this machine";
  if (!ours.store) return "our ca.crt is no PEM certificate";
  if (!ours.certificate) return "our own certificate is no PEM certificate";
  if (!key) return "our own key is no PEM key without a password";
  SSL_CTX* context = ours.context.get();
  if (SSL_CTX_use_certificate(context, ours.certificate.get()) != 1 || SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return "our own certificate and key do not belong together";
  SSL_CTX_set1_cert_store(context, ours.store.get());
  // The handshake goes on whatever the certificate says, so that we can say what is wrong with it.
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context, kHttp2, sizeof kHttp2);
  return ours;
}

std::string refused_ours(const std::string& address, const Ours& ours, int alert) {
  std::string why =
      trust_fault(verify_chain(ours.store.get(), ours.certificate.get()), ours.certificate.get(), "our certificate");
  if (why.empty() && alert == SSL_AD_UNKNOWN_CA) why = "it trusts another authority than our ca.crt";
  if (why.empty() && alert != 0) why = SSL_alert_desc_string_long(alert);
  return fmt::format("the coordinator at {} refused our certificate{}{}", address, why.empty() ? "" : ": ", why);
}

/// What is wrong with the certificate that the other side showed; empty if nothing.
std::string their_fault(SSL* ssl, const std::string& address, const Expected& expected) {
  const CertificatePtr theirs(SSL_get1_peer_certificate(ssl));
  if (!theirs) return fmt::format("{} shows no certificate", address);
  const BioPtr pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), theirs.get());
  char* first = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &first);
  const auto checked =
      verify_party(expected.authority, {first, first + size}, Role::kCoordinator, expected.name, expected.key_hash);
  return checked ? "" : fmt::format("at {}, {}", address, checked.error().message);
}

std::string handshake_fault(Step step, const std::string& address, const Ours& ours) {
  const int alert = last_alert();
  if (step == Step::kTimeout)
    return fmt::format("{} accepts connections, but gives no answer within {} s", address, kPatience.count() / 1000);
  if (step == Step::kClosed) return closes_at_once(address);
  if (about_our_certificate(alert)) return refused_ours(address, ours, alert);
  if (alert == SSL_AD_NO_APPLICATION_PROTOCOL)
    return fmt::format("{} speaks TLS, but no HTTP/2: it is no coordinator", address);
  if (alert != 0) return fmt::format("{} broke off TLS ({})", address, SSL_alert_desc_string_long(alert));
  return fmt::format("{} speaks no TLS: it is no coordinator, or one without certificates", address);
}

std::string probe(const std::string& address, const Expected& expected, const Ours& ours) {
  auto opened = open_socket(address);
  if (const auto* fault = std::get_if<std::string>(&opened)) return *fault;
  TlsConnection connection(ours.context.get(), std::get<Socket>(opened));
  SSL* ssl = connection.get();
  SSL_set_tlsext_host_name(ssl, expected.name.c_str());

  const Step shaken = connection.run([](SSL* s) { return SSL_connect(s); });
  if (shaken != Step::kDone) return handshake_fault(shaken, address, ours);
  if (std::string fault = their_fault(ssl, address, expected); !fault.empty()) return fault;

  // In TLS 1.3 the other side looks at our certificate only now. A coordinator sends its HTTP/2 settings at once.
  char byte = 0;
  const Step read = connection.run([&](SSL* s) { return SSL_read(s, &byte, 1); });
  const int alert = last_alert();
  if (read == Step::kClosed || (read == Step::kFailed && about_our_certificate(alert)))
    return refused_ours(address, ours, alert);
  if (read == Step::kFailed) return fmt::format("{} broke off the connection after TLS began", address);

  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (size == 0) return fmt::format("{} speaks TLS, but no HTTP/2: it is no coordinator", address);
  return fmt::format("no fault found: {} speaks TLS and its certificate is good", address);
}

}  // namespace

std::string why_no_connection(const std::string& address, const std::string& coordinator,
                              const std::string& coordinator_key, const Identity& own) {
  const auto ours = our_side(own.authority, own.certificate, own.key);
  std::string answer;
  if (const auto* fault = std::get_if<std::string>(&ours))
    answer = *fault;
  else
    answer = probe(address, {own.authority, coordinator, coordinator_key}, std::get<Ours>(ours));
  ERR_clear_error();
  return answer;
}

}  // namespace eigenveil::federation
