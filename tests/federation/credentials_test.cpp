// SPDX-License-Identifier: Apache-2.0
#include "src/federation/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/federation/tls_probe.hpp"
#include "tests/support/child.hpp"
#include "tests/support/parties.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::identity_of;
using test::make_party;
using test::make_site;
using test::read_file;
using test::TempDir;

/// Tells who called, and that is all.
class Greeter final : public wire::v2::Coordinator::Service {
 public:
  grpc::Status Join(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>* stream) override {
    const auto peer = peer_of(*context->auth_context());
    wire::v2::ToSite message;
    message.mutable_refusal()->set_reason(peer ? std::string(name(peer->role)) + " " + peer->name : "nobody");
    stream->Write(message);
    return grpc::Status::OK;
  }
};

/// A coordinator's port, opened with any credentials.
class Port {
 public:
  explicit Port(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Port() { server_->Shutdown(std::chrono::system_clock::now()); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  Greeter service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// What a call hears; "refused" if it does not get through.
std::string call(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  const auto channel = grpc::CreateCustomChannel(address, credentials, arguments);
  const auto stub = wire::v2::Coordinator::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Join(&context);
  stream->WritesDone();
  wire::v2::ToSite message;
  const bool heard = stream->Read(&message);
  if (heard)
    for (wire::v2::ToSite more; stream->Read(&more);) continue;
  return stream->Finish().ok() && heard ? message.refusal().reason() : "refused";
}

// What a party without our program may do: TLS that accepts every server, with any certificate.
std::shared_ptr<grpc::ChannelCredentials> careless(const Identity& own) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      own.authority, std::vector<grpc::experimental::IdentityKeyCertPair>{{own.key, own.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> careless_port(const Identity& own) {
  grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_root_certs = own.authority;
  options.pem_key_cert_pairs.push_back({own.key, own.certificate});
  return grpc::SslServerCredentials(options);
}

class Credentials : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_authority(folder(), "study", {}).ok());
    coordinator_ = make_party(folder(), "coordinator", Role::kCoordinator);
    for (const char* name : {"north", "south"}) pins_[name] = make_site(folder(), name).key_hash;
  }
  std::string folder() const { return dir_.file("study"); }
  Identity site(const std::string& name) const { return identity_of(folder(), name, Role::kSite); }
  Identity host(const std::string& name) const { return identity_of(folder(), name, Role::kCoordinator); }
  std::shared_ptr<grpc::ServerCredentials> listening() const {
    return credentials_of_coordinator(host("coordinator"), pins_);
  }
  std::shared_ptr<grpc::ChannelCredentials> dialling(const std::string& name) const {
    return credentials_of_site(site(name), "coordinator", coordinator_.key_hash);
  }
  // Another certificate of the same name for a key that nobody pinned, by the same authority.
  Identity reissued(const std::string& name, Role role) {
    std::filesystem::rename(folder() + "/" + name + ".crt", folder() + "/" + name + ".first");
    std::filesystem::remove(folder() + "/" + name + ".key");
    std::filesystem::remove(folder() + "/" + name + ".csr");
    make_party(folder(), name, role);
    return identity_of(folder(), name, role);
  }

  TempDir dir_;
  Party coordinator_;
  Pins pins_;
};

TEST_F(Credentials, ASiteAndItsCoordinatorMeet) {
  const Port port(listening());
  EXPECT_EQ(call(port.address(), dialling("north")), "site north");
  EXPECT_EQ(call(port.address(), dialling("south")), "site south");
}

TEST_F(Credentials, TheCoordinatorHearsOnlySitesThatItListedWithTheirKeys) {
  make_site(folder(), "stranger");
  make_site(folder(), "late", {.until = -5});
  pins_["late"] = party_of(read_file(folder() + "/late.crt"))->key_hash;
  const Port port(listening());
  EXPECT_EQ(call(port.address(), careless(site("north"))), "site north");
  EXPECT_EQ(call(port.address(), careless(site("stranger"))), "refused");
  EXPECT_EQ(call(port.address(), careless(site("late"))), "refused") << "expired";
  EXPECT_EQ(call(port.address(), careless(reissued("north", Role::kSite))), "refused") << "another key";
  EXPECT_EQ(call(port.address(), grpc::SslCredentials({})), "refused") << "no certificate";
  EXPECT_EQ(call(port.address(), grpc::InsecureChannelCredentials()), "refused");
}

TEST_F(Credentials, ASiteThatIsNotListedLearnsThatItWasRefused) {
  make_site(folder(), "stranger");
  const Port port(listening());
  const auto probe = [&](const std::string& name) {
    return why_no_connection(port.address(), "coordinator", coordinator_.key_hash, site(name));
  };
  EXPECT_THAT(probe("north"), testing::StartsWith("no fault found"));
  EXPECT_THAT(probe("stranger"), testing::HasSubstr("refused our certificate"));
  const auto channel = grpc::CreateChannel(port.address(), dialling("stranger"));
  channel->GetState(true);
  EXPECT_FALSE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::milliseconds(500)));
}

TEST_F(Credentials, ACoordinatorIsNoSite) {
  pins_["coordinator"] = coordinator_.key_hash;  // not even one that lists itself
  const Port port(listening());
  EXPECT_EQ(call(port.address(), careless(host("coordinator"))), "refused");
}

TEST_F(Credentials, ASiteTalksToItsCoordinatorAlone) {
  const auto hears = [&](const Identity& other) {
    const Port port(careless_port(other));
    return call(port.address(), dialling("north"));
  };
  EXPECT_EQ(hears(host("coordinator")), "nobody") << "it gets through, without having been asked who it is";
  EXPECT_EQ(hears(site("south")), "refused") << "a site is no coordinator";
  make_party(folder(), "second", Role::kCoordinator, {"coordinator", "127.0.0.1", "localhost"});
  EXPECT_EQ(hears(host("second")), "refused") << "another coordinator with the host names of the first";
  make_party(folder(), "old", Role::kCoordinator, {}, {.until = -5});
  {
    const Port port(careless_port(host("old")));
    const auto expects_old = credentials_of_site(site("north"), "old", host("old").party.key_hash);
    EXPECT_EQ(call(port.address(), expects_old), "refused") << "expired";
  }
  EXPECT_EQ(hears(reissued("coordinator", Role::kCoordinator)), "refused") << "the name, but another key";
}

TEST_F(Credentials, TheKeyOfOneCoordinatorUnderASitesCertificateIsRefused) {
  // The authority errs: the coordinator's key is certified as a site, too. The role is in the certificate, not the key.
  std::filesystem::copy(folder() + "/coordinator.key", dir_.file("double.key"));
  test::output_of({"openssl", "req", "-new", "-key", dir_.file("double.key"), "-subj", "/CN=west", "-addext",
                   "subjectAltName=URI:eigenveil:site:west", "-out", dir_.file("west.csr")});
  const auto west = sign_request(folder(), read_file(dir_.file("west.csr")), Role::kSite, {});
  ASSERT_TRUE(west.ok());
  EXPECT_EQ(west->key_hash, coordinator_.key_hash);
  const Identity own{read_file(folder() + "/ca.crt"), read_file(folder() + "/west.crt"),
                     read_file(dir_.file("double.key")), *west};
  const Port port(careless_port(own));
  EXPECT_EQ(call(port.address(), dialling("north")), "refused");
}

TEST_F(Credentials, AnotherAuthorityIsRefusedOnBothSides) {
  ASSERT_TRUE(make_authority(dir_.file("other"), "study", {}).ok());
  const Party stranger = make_site(dir_.file("other"), "north");
  make_party(dir_.file("other"), "coordinator", Role::kCoordinator);
  pins_["north"] = stranger.key_hash;
  const Port port(listening());
  EXPECT_EQ(call(port.address(), careless(identity_of(dir_.file("other"), "north", Role::kSite))), "refused");
  const Port false_port(careless_port(identity_of(dir_.file("other"), "coordinator", Role::kCoordinator)));
  EXPECT_EQ(call(false_port.address(), dialling("north")), "refused");
}

}  // namespace
}  // namespace eigenveil::federation
