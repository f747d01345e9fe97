// SPDX-License-Identifier: Apache-2.0
#include "credentials.hpp"

#include <grpc/support/log.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

namespace eigenveil::federation {
namespace {

namespace tls = grpc::experimental;

/// Asks who the other side is, after TLS has checked its chain and that it has the certificate's key.
class Doorkeeper final : public tls::ExternalCertificateVerifier {
 public:
  using Welcome = std::function<Status(const std::string& certificate_pem)>;
  explicit Doorkeeper(Welcome welcome) : welcome_(std::move(welcome)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* answer) override {
    const auto certificate = request->peer_cert();
    const Status welcome = welcome_({certificate.data(), certificate.size()});
    *answer = welcome ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, welcome.error().message);
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  Welcome welcome_;
};

// gRPC writes to the terminal by itself, with words of the other side in it.
void keep_grpc_quiet() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

void fill(tls::TlsCredentialsOptions& options, const Identity& own, Doorkeeper::Welcome welcome) {
  keep_grpc_quiet();
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
      own.authority, std::vector<tls::IdentityKeyCertPair>{{own.key, own.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(tls::ExternalCertificateVerifier::Create<Doorkeeper>(std::move(welcome)));
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> credentials_of_site(const Identity& own, const std::string& coordinator,
                                                              const std::string& coordinator_key) {
  tls::TlsChannelCredentialsOptions options;
  fill(options, own, [authority = own.authority, coordinator, coordinator_key](const std::string& certificate) {
    return verify_party(authority, certificate, Role::kCoordinator, coordinator, coordinator_key);
  });
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);  // the key says who it is, not the host name
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> credentials_of_coordinator(const Identity& own, const Pins& sites) {
  // The server takes its certificates from the same provider.
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::StaticDataCertificateProvider>(
      own.authority, std::vector<tls::IdentityKeyCertPair>{{own.key, own.certificate}}));
  fill(options, own, [authority = own.authority, sites](const std::string& certificate) -> Status {
    const auto party = EIGENVEIL_TRY(party_of(certificate));
    const auto pin = sites.find(party.name);
    if (pin == sites.end()) return bad_input("'" + party.name + "' is not among the sites of this study");
    return verify_party(authority, certificate, Role::kSite, party.name, pin->second);
  });
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

Result<Party> peer_of(const grpc::AuthContext& context) {
  const auto shown = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.size() != 1) return bad_input("the other side shows no certificate");
  return party_of({shown.front().data(), shown.front().size()});
}

}  // namespace eigenveil::federation
