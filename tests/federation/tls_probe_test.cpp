// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/tls_probe.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "eigenveil/federation/certificates.hpp"
#include "tests/support/child.hpp"
#include "tests/support/parties.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::Child;
using test::make_party;
using test::make_site;
using test::read_file;
using test::TempDir;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A TCP port of this machine, bound and listening.
class Listener {
 public:
  explicit Listener(int backlog = 8) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(socket_, address, size) != 0 || ::listen(socket_, backlog) != 0 ||
        ::getsockname(socket_, address, &size) != 0)
      throw std::runtime_error("no listener");
    port_ = ntohs(at.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  /// Accepts one connection, does this with it, and closes it.
  void serve(std::function<void(int)> conversation) {
    thread_ = std::thread([this, conversation = std::move(conversation)] {
      const int accepted = ::accept(socket_, nullptr, nullptr);
      if (accepted < 0) return;
      conversation(accepted);
      ::close(accepted);
    });
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

/// `openssl s_server`, which knows nothing of our code.
class Server {
 public:
  Server(const std::string& ca, const std::string& path, const std::vector<std::string>& more = {"-alpn", "h2"})
      : child_(command(ca, path, more)), address_(child_.line_after("ACCEPT ")) {}
  const std::string& address() const { return address_; }

 private:
  static std::vector<std::string> command(const std::string& ca, const std::string& path,
                                          const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "openssl",     "s_server", "-accept", "127.0.0.1:0", "-cert", path + ".crt",         "-key",
        path + ".key", "-CAfile",  ca,        "-Verify",     "1",     "-verify_return_error"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Child child_;
  std::string address_;
};

class TlsProbe : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* study : {"study", "other"}) {
      ASSERT_TRUE(make_authority(dir_.file(study), "same name", {}).ok());
      make_party(dir_.file(study), "coordinator", Role::kCoordinator, {"localhost"});
      make_site(dir_.file(study), "site");
    }
    make_party(dir_.file("study"), "old", Role::kCoordinator, {"coordinator"}, {.until = -5});
    make_party(dir_.file("study"), "new", Role::kCoordinator, {"coordinator"}, {.from = 600});
    make_site(dir_.file("study"), "old-site", {.until = -5});
  }
  std::string path(const std::string& name) const { return dir_.file(name); }
  std::string pin(const std::string& name) const { return party_of(read_file(path(name + ".crt")))->key_hash; }
  Identity own(const std::string& site = "study/site") const {
    return {read_file(path("study/ca.crt")), read_file(path(site + ".crt")), read_file(path(site + ".key")), {}};
  }
  std::string probe(const std::string& address, const std::string& site = "study/site",
                    const std::string& coordinator = "coordinator") const {
    return why_no_connection(address, coordinator, pin("study/" + coordinator), own(site));
  }

  TempDir dir_;
};

TEST_F(TlsProbe, FindsNoFaultWithTheRightCertificates) {
  const Server server(path("study/ca.crt"), path("study/coordinator"));
  EXPECT_THAT(probe(server.address()), StartsWith("no fault found"));
}

TEST_F(TlsProbe, FindsNoFaultInTheOlderTls) {
  const Server server(path("study/ca.crt"), path("study/coordinator"), {"-alpn", "h2", "-tls1_2"});
  EXPECT_THAT(probe(server.address()), StartsWith("no fault found"));
  EXPECT_THAT(probe(server.address(), "other/site"), HasSubstr("refused our certificate"));
}

TEST_F(TlsProbe, SaysThatNobodyListens) {
  std::string address;
  {
    const Listener closed;
    address = closed.address();
  }
  EXPECT_EQ(probe(address), "nobody listens at " + address + " (connection refused)");
}

TEST_F(TlsProbe, SaysThatTheHostOrTheAddressIsNone) {
  EXPECT_EQ(probe("nowhere.invalid:443"), "the host name 'nowhere.invalid' is unknown here");
  for (const char* address : {"", "host", "host:", ":80"}) EXPECT_THAT(probe(address), HasSubstr("form host:port"));
}

TEST_F(TlsProbe, SaysThatThereIsNoAnswer) {
  const Listener silent;  // the kernel accepts, nobody speaks
  EXPECT_THAT(probe(silent.address()), EndsWith("gives no answer within 2 s"));

  const Listener full(0);
  std::vector<int> waiting;
  for (int i = 0; i < 3; ++i) {  // fill the queue, so that the kernel drops what knocks
    waiting.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(full.address().substr(10))));
    (void)::connect(waiting.back(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  EXPECT_THAT(probe(full.address()), StartsWith("no answer from 127.0.0.1:"));
  for (const int socket : waiting) ::close(socket);
}

TEST_F(TlsProbe, SaysThatThePeerSpeaksNoTls) {
  Listener chatty;
  chatty.serve([](int peer) {
    (void)::send(peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
    char bytes[4096];
    while (::recv(peer, bytes, sizeof bytes, 0) > 0) {
    }
  });
  EXPECT_THAT(probe(chatty.address()), HasSubstr("speaks no TLS"));
  Listener closing;
  closing.serve([](int) {});
  EXPECT_THAT(probe(closing.address()), HasSubstr("it speaks no TLS"));
  Listener resetting;
  resetting.serve([](int peer) {
    const linger now{1, 0};
    ::setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  });
  EXPECT_THAT(probe(resetting.address()), HasSubstr("it speaks no TLS"));
}

TEST_F(TlsProbe, SaysThatAnotherAuthoritySignedTheirCertificate) {
  const Server server(path("study/ca.crt"), path("other/coordinator"));
  EXPECT_EQ(probe(server.address()), "at " + server.address() +
                                         ", the certificate of the coordinator 'coordinator' is signed by another "
                                         "authority than ca.crt");
}

TEST_F(TlsProbe, SaysThatTheirCertificateHasExpiredOrIsNotValidYet) {
  const Server old(path("study/ca.crt"), path("study/old"));
  EXPECT_EQ(probe(old.address(), "study/site", "old"),
            "at " + old.address() + ", the certificate of the coordinator 'old' has expired (" +
                party_of(read_file(path("study/old.crt")))->valid_until_utc + ")");
  const Server early(path("study/ca.crt"), path("study/new"));
  EXPECT_THAT(probe(early.address(), "study/site", "new"), HasSubstr("is not valid yet"));
}

TEST_F(TlsProbe, SaysThatTheirCertificateIsOfAnotherRoleNameOrKey) {
  const Server site(path("study/ca.crt"), path("study/site"));
  EXPECT_THAT(probe(site.address()), EndsWith("is that of a site"));
  make_party(dir_.file("study"), "second", Role::kCoordinator, {"coordinator"});
  const Server second(path("study/ca.crt"), path("study/second"));
  EXPECT_THAT(probe(second.address()), EndsWith("carries the name 'second'"));
  const Server right(path("study/ca.crt"), path("study/coordinator"));
  EXPECT_THAT(why_no_connection(right.address(), "coordinator", pin("study/second"), own()), HasSubstr("pinned"));
}

TEST_F(TlsProbe, SaysThatOurCertificateWasRefusedAndWhy) {
  const Server server(path("study/ca.crt"), path("study/coordinator"));
  EXPECT_THAT(probe(server.address(), "study/old-site"),
              HasSubstr("refused our certificate: our certificate has expired"));
  EXPECT_THAT(probe(server.address(), "other/site"),
              EndsWith("refused our certificate: our certificate is signed by another authority than ca.crt"));
  const Server stranger(path("other/ca.crt"), path("study/coordinator"));
  EXPECT_THAT(probe(stranger.address()),
              EndsWith("refused our certificate: it trusts another authority than our ca.crt"));
}

TEST_F(TlsProbe, SaysTheSameOfAGrpcServer) {
  const auto serve = [&](const std::string& trusted, const std::string& name, int& port) {
    grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = read_file(path(trusted + "/ca.crt"));
    options.pem_key_cert_pairs.push_back({read_file(path(name + ".key")), read_file(path(name + ".crt"))});
    static wire::v2::Coordinator::Service service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    builder.RegisterService(&service);
    return builder.BuildAndStart();
  };
  int port = 0;
  const auto good = serve("study", "study/coordinator", port);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(probe(address), StartsWith("no fault found"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1900))
      << "its settings come at once: 2 s is its patience";
  EXPECT_THAT(probe(address, "study/old-site"), HasSubstr("refused our certificate: our certificate has expired"));
  EXPECT_THAT(probe(address, "other/site"), HasSubstr("refused our certificate: our certificate is signed by another"));
  int second = 0;
  const auto stranger = serve("other", "study/coordinator", second);
  EXPECT_THAT(probe("127.0.0.1:" + std::to_string(second)), HasSubstr("refused our certificate"));
  int third = 0;
  const auto old = serve("study", "study/old", third);
  EXPECT_THAT(probe("127.0.0.1:" + std::to_string(third), "study/site", "old"), HasSubstr("has expired (20"));
}

TEST_F(TlsProbe, SaysThatATlsServerIsNoCoordinator) {
  const Server plain(path("study/ca.crt"), path("study/coordinator"), {});
  EXPECT_THAT(probe(plain.address()), HasSubstr("no HTTP/2"));
  const Server web(path("study/ca.crt"), path("study/coordinator"), {"-alpn", "http/1.1"});
  EXPECT_THAT(probe(web.address()), HasSubstr("no HTTP/2"));
}

TEST_F(TlsProbe, SaysThatOurOwnFilesAreNotWhatTheyShouldBe) {
  const std::string ca = read_file(path("study/ca.crt"));
  const std::string crt = read_file(path("study/site.crt"));
  const std::string key = read_file(path("study/site.key"));
  const auto says = [](const std::string& a, const std::string& c, const std::string& k) {
    return why_no_connection("127.0.0.1:1", "coordinator", std::string(64, '0'), {a, c, k, {}});
  };
  EXPECT_THAT(says("", crt, key), HasSubstr("our ca.crt"));
  EXPECT_THAT(says(ca, "", key), HasSubstr("our own certificate"));
  EXPECT_THAT(says(ca, crt, crt), HasSubstr("our own key"));
  EXPECT_THAT(says(ca, crt, read_file(path("study/coordinator.key"))), HasSubstr("do not belong together"));
}

TEST_F(TlsProbe, ManyThreadsProbeAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, wrong = i % 2 == 0] {
      const Server server(path("study/ca.crt"), path(wrong ? "other/coordinator" : "study/site"));
      for (int j = 0; j < 5; ++j) EXPECT_THAT(probe(server.address()), HasSubstr(wrong ? "authority" : "of a site"));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace eigenveil::federation
