// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/child.hpp"
#include "tests/support/parties.hpp"

namespace eigenveil::federation {
namespace {

using test::make_party;
using test::make_site;
using test::output_of;
using test::read_file;
using test::TempDir;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

const Validity kMonth = *Validity::of_days(30);

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().message;
}

class Certificates : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_authority(folder(), "heart study", kMonth).ok());
    a_ = make_site(folder(), "a", *Validity::of_days(20));
    c_ = make_party(folder(), "c", Role::kCoordinator, {"c.example.org", "192.0.2.7", "::1"});
  }
  std::string folder() const { return dir_.file("study"); }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  std::string text(const std::string& name) const { return read_file(file(name)); }
  std::string described(const std::string& name) const {
    return output_of({"openssl", "x509", "-noout", "-text", "-in", file(name)});
  }
  Status verify(const std::string& certificate, Role role, const std::string& name, const std::string& hash) const {
    return verify_party(text("ca.crt"), text(certificate), role, name, hash);
  }
  // What somebody with the authority's key and OpenSSL alone could issue.
  std::string issued(const std::string& subject, const std::string& extensions) const {
    dir_.write_file("extensions", extensions);
    output_of({"openssl", "req", "-new", "-key", file("a.key"), "-subj", subject, "-out", dir_.file("x.csr")});
    output_of({"openssl", "x509", "-req", "-in", dir_.file("x.csr"), "-CA", file("ca.crt"), "-CAkey", file("ca.key"),
               "-days", "1", "-extfile", dir_.file("extensions"), "-out", dir_.file("x.crt")});
    return read_file(dir_.file("x.crt"));
  }

  TempDir dir_;
  Party a_;
  Party c_;
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

TEST_F(Certificates, OpensslAgreesWhoMayDoWhat) {
  const auto verified = [&](const std::string& name, const std::string& purpose) {
    return output_of({"sh", "-c",
                      "openssl verify -x509_strict -purpose " + purpose + " -CAfile " + file("ca.crt") + " " +
                          file(name) + " 2>&1 || true"});
  };
  EXPECT_THAT(verified("a.crt", "sslclient"), HasSubstr("OK"));
  EXPECT_THAT(verified("a.crt", "sslserver"), HasSubstr("unsuitable certificate purpose"));
  EXPECT_THAT(verified("c.crt", "sslserver"), HasSubstr("OK"));
  EXPECT_THAT(verified("c.crt", "sslclient"), HasSubstr("unsuitable certificate purpose"));
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_ip", "192.0.2.7", file("c.crt")});
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_ip", "::1", file("c.crt")});
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_hostname", "c.example.org", file("c.crt")});
}

TEST_F(Certificates, SayWhatTheyAreFor) {
  const std::string ca = described("ca.crt");
  for (const char* part :
       {"CN = heart study", "CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "prime256v1", "ecdsa-with-SHA256"})
    EXPECT_THAT(ca, HasSubstr(part));
  const std::string site = described("a.crt");
  for (const char* part : {"Subject: CN = a\n", "CA:FALSE", "Digital Signature", "TLS Web Client Authentication\n",
                           "URI:eigenveil:site:a\n"})
    EXPECT_THAT(site, HasSubstr(part));
  EXPECT_THAT(site, Not(HasSubstr("Certificate Sign")));
  const std::string coordinator = described("c.crt");
  for (const char* part : {"TLS Web Server Authentication\n",
                           "URI:eigenveil:coordinator:c, DNS:c, DNS:c.example.org, IP Address:192.0.2.7"})
    EXPECT_THAT(coordinator, HasSubstr(part));
}

TEST_F(Certificates, ThePinIsTheHashThatOpensslComputes) {
  const std::string theirs = output_of(
      {"sh", "-c",
       "openssl x509 -noout -pubkey -in " + file("a.crt") + " | openssl pkey -pubin -outform der | sha256sum"});
  EXPECT_EQ(a_.key_hash, theirs.substr(0, 64));
  EXPECT_EQ(party_of(text("a.crt"))->key_hash, a_.key_hash);
  EXPECT_EQ(read_request(text("a.csr"))->key_hash, a_.key_hash);
  EXPECT_NE(a_.key_hash, c_.key_hash);
}

TEST_F(Certificates, HoldForTheDaysGivenAndEndWithTheirAuthority) {
  const auto holds = [&](const std::string& name, long days) {
    return output_of(
        {"sh", "-c",
         "openssl x509 -noout -in " + file(name) + " -checkend " + std::to_string(days * 86400) + " || true"});
  };
  EXPECT_THAT(holds("a.crt", 19), HasSubstr("will not expire"));
  EXPECT_THAT(holds("a.crt", 20), HasSubstr("will expire"));
  const Party longer = make_site(folder(), "long", *Validity::of_days(3650));
  EXPECT_NEAR(static_cast<double>(longer.not_after - a_.not_after), 10 * 86400, 60) << "that of the authority";
  EXPECT_THAT(a_.valid_until_utc, MatchesRegex("20..-..-.. ..:.. UTC"));
}

TEST_F(Certificates, KeysAreForTheirOwnerOnlyAndNothingElseIsLeft) {
  EXPECT_EQ(mode_of(file("ca.key")), 0600u);
  EXPECT_EQ(mode_of(file("a.key")), 0600u);
  EXPECT_EQ(mode_of(file("a.crt")), 0644u);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("ca.crt", "ca.key", "a.crt", "a.key", "a.csr", "c.crt", "c.key", "c.csr"));
}

TEST_F(Certificates, NothingIsOverwrittenAndANameIsSignedOnce) {
  const std::string ca = text("ca.key");
  const std::string a = text("a.crt");
  EXPECT_THAT(message(make_authority(folder(), "other", kMonth)), HasSubstr("never overwritten"));
  EXPECT_THAT(message(make_request(file("a"), {"a"})), HasSubstr("never overwritten"));
  ASSERT_TRUE(make_request(dir_.file("another"), {"a"}).ok());
  EXPECT_THAT(message(sign_request(folder(), read_file(dir_.file("another.csr")), Role::kSite, kMonth)),
              HasSubstr("never overwritten"));
  std::filesystem::remove(file("ca.crt"));
  EXPECT_THAT(message(make_authority(folder(), "other", kMonth)), HasSubstr("ca.key exists"));
  EXPECT_EQ(text("ca.key"), ca);
  EXPECT_EQ(text("a.crt"), a);
}

TEST_F(Certificates, RefuseNamesThatAreNoNames) {
  for (const std::string name : {"", "ca", "CA", "a b", "a/b", "..", ".a", "-a", "a_b", "a\n", "\xc3\xa4", "a:b"})
    EXPECT_EQ(make_request(dir_.file("r"), {name}).error().code, ErrorCode::kUsage) << name;
  EXPECT_FALSE(make_request(dir_.file("r"), {std::string(64, 'x')}).ok());
  EXPECT_TRUE(make_request(dir_.file("r1"), {std::string(63, 'x')}).ok());
  EXPECT_TRUE(make_request(dir_.file("r2"), {"St.Mary-2"}).ok());
  for (const std::string host : {"", "a b", "x,DNS:evil", "300.1.1.1:80", "x\ny", "URI:eigenveil:site:b"})
    EXPECT_FALSE(make_request(dir_.file("r"), {"b", Role::kCoordinator, {host}}).ok()) << host;
  for (const int days : {0, -1, 40000}) EXPECT_FALSE(Validity::of_days(days).ok());
  EXPECT_FALSE(make_authority(dir_.file("c"), "", kMonth).ok());
  EXPECT_FALSE(make_authority(dir_.file("c"), std::string(65, 'x'), kMonth).ok());
}

TEST_F(Certificates, ASiteHasNoHostNamesSoItCannotBeDialledAsTheCoordinator) {
  EXPECT_THAT(message(make_request(dir_.file("r"), {"b", Role::kSite, {"coordinator"}})),
              HasSubstr("a site has no host names"));
  output_of({"openssl", "req", "-new", "-key", file("a.key"), "-subj", "/CN=b", "-addext",
             "subjectAltName=URI:eigenveil:site:b,DNS:coordinator", "-out", dir_.file("b.csr")});
  EXPECT_THAT(message(sign_request(folder(), read_file(dir_.file("b.csr")), Role::kSite, kMonth)),
              HasSubstr("a site has no host names"));
  EXPECT_FALSE(std::filesystem::exists(file("b.crt")));
}

TEST_F(Certificates, TheAuthorityNamesTheRoleAndSignsNoOther) {
  ASSERT_TRUE(make_request(dir_.file("b"), {"b", Role::kCoordinator}).ok());
  EXPECT_THAT(message(sign_request(folder(), read_file(dir_.file("b.csr")), Role::kSite, kMonth)),
              HasSubstr("the request is for the coordinator 'b', not for a site"));
  ASSERT_TRUE(make_request(dir_.file("d"), {"d"}).ok());
  EXPECT_FALSE(sign_request(folder(), read_file(dir_.file("d.csr")), Role::kCoordinator, kMonth).ok());
}

TEST_F(Certificates, OfARequestOnlyNameRoleHostsAndKeyAreTakenOver) {
  output_of({"openssl", "req", "-new", "-key", file("a.key"), "-subj", "/O=Another/CN=b", "-addext",
             "subjectAltName=URI:eigenveil:site:b", "-addext", "basicConstraints=CA:TRUE", "-addext",
             "extendedKeyUsage=serverAuth,clientAuth", "-out", dir_.file("b.csr")});
  ASSERT_EQ(message(sign_request(folder(), read_file(dir_.file("b.csr")), Role::kSite, kMonth)), "ok");
  const std::string b = described("b.crt");
  EXPECT_THAT(b, HasSubstr("CA:FALSE"));
  EXPECT_THAT(b, Not(HasSubstr("Server Authentication")));
  EXPECT_THAT(b, Not(HasSubstr("Another")));
}

TEST_F(Certificates, RequestsThatAreForNobodyOrSeveralAreRefused) {
  const auto asked = [&](const std::string& subject, const std::string& names) {
    std::vector<std::string> command = {
        "openssl", "req", "-new", "-key", file("a.key"), "-subj", subject, "-out", dir_.file("x.csr")};
    if (!names.empty()) command.insert(command.end(), {"-addext", "subjectAltName=" + names});
    output_of(command);
    return message(read_request(read_file(dir_.file("x.csr"))));
  };
  EXPECT_EQ(asked("/CN=b", "URI:eigenveil:site:b"), "ok");
  EXPECT_THAT(asked("/CN=b", ""), HasSubstr("neither site nor coordinator"));
  EXPECT_THAT(asked("/CN=b", "URI:eigenveil:site:b,URI:eigenveil:coordinator:b"), HasSubstr("two roles"));
  EXPECT_THAT(asked("/CN=b", "URI:eigenveil:site:d"), HasSubstr("two names"));
  EXPECT_THAT(asked("/CN=b/CN=d", "URI:eigenveil:site:b"), HasSubstr("more than one common name"));
  EXPECT_THAT(asked("/CN=b", "URI:eigenveil:judge:b"), HasSubstr("no role"));
  EXPECT_THAT(asked("/CN=b", "URI:eigenveil:site:b,email:b@example.org"), HasSubstr("a kind that no party has"));
  EXPECT_THAT(asked("/CN=b", "URI:https\\://example.org"), HasSubstr("names no party"));
  std::string csr = text("a.csr");
  const std::size_t at = csr.size() / 2;  // inside of the base64 text: key or signature are others then
  csr[at] = csr[at] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(read_request(csr).ok());
  EXPECT_FALSE(read_request("garbage").ok());
  output_of({"openssl", "req", "-new", "-newkey", "rsa:1024", "-nodes", "-keyout", dir_.file("weak.key"), "-subj",
             "/CN=b", "-addext", "subjectAltName=URI:eigenveil:site:b", "-out", dir_.file("weak.csr")});
  EXPECT_THAT(message(read_request(read_file(dir_.file("weak.csr")))), HasSubstr("too weak"));
}

TEST_F(Certificates, APartyHasOneNameOneRoleAndOneUse) {
  const std::string names = "subjectAltName=URI:eigenveil:site:b\n";
  EXPECT_EQ(message(party_of(issued("/CN=b", names + "extendedKeyUsage=clientAuth"))), "ok");
  EXPECT_THAT(message(party_of(issued("/CN=b", names + "extendedKeyUsage=clientAuth,serverAuth"))),
              HasSubstr("not that of a site alone"));
  EXPECT_THAT(message(party_of(issued("/CN=b", names + "extendedKeyUsage=serverAuth"))),
              HasSubstr("not that of a site alone"));
  EXPECT_THAT(message(party_of(issued("/CN=b", names))), HasSubstr("not that of a site alone"));
  EXPECT_THAT(message(party_of(issued("/CN=b", "extendedKeyUsage=clientAuth"))), HasSubstr("neither site nor"));
  EXPECT_THAT(message(party_of(issued("/CN=b", "subjectAltName=URI:eigenveil:site:b,URI:eigenveil:site:d"))),
              HasSubstr("two roles or names"));
  EXPECT_THAT(message(party_of(issued("/CN=d", names + "extendedKeyUsage=clientAuth"))), HasSubstr("two names"));
  EXPECT_THAT(message(party_of(issued("/CN=b", names + "extendedKeyUsage=clientAuth\nbasicConstraints=CA:TRUE"))),
              HasSubstr("that of an authority"));
  EXPECT_FALSE(party_of(text("ca.crt")).ok());
  EXPECT_FALSE(party_of("garbage").ok());
}

TEST_F(Certificates, APartyIsItsRoleItsNameAndItsKey) {
  EXPECT_EQ(message(verify("a.crt", Role::kSite, "a", a_.key_hash)), "ok");
  EXPECT_EQ(message(verify("c.crt", Role::kCoordinator, "c", c_.key_hash)), "ok");
  EXPECT_THAT(message(verify("a.crt", Role::kCoordinator, "a", a_.key_hash)), HasSubstr("is that of a site"));
  EXPECT_THAT(message(verify("c.crt", Role::kSite, "c", c_.key_hash)), HasSubstr("is that of a coordinator"));
  for (const char* name : {"b", "A", "", "a.", "eigenveil:site:a"})
    EXPECT_FALSE(verify("a.crt", Role::kSite, name, a_.key_hash).ok()) << name;
  EXPECT_THAT(message(verify("a.crt", Role::kSite, "b", a_.key_hash)), HasSubstr("carries the name 'a'"));
  EXPECT_THAT(message(verify("a.crt", Role::kSite, "a", c_.key_hash)), HasSubstr("pinned"));
  for (const std::string& hash : {std::string(), a_.key_hash.substr(0, 63), a_.key_hash + "0"})
    EXPECT_FALSE(verify("a.crt", Role::kSite, "a", hash).ok()) << hash;
}

TEST_F(Certificates, ReissuedWithAnotherKeyIsNotWhoWasPinned) {
  ASSERT_TRUE(std::filesystem::remove(file("a.crt")));
  ASSERT_TRUE(std::filesystem::create_directory(dir_.file("again")));
  ASSERT_TRUE(make_request(dir_.file("again/a"), {"a"}).ok());
  ASSERT_TRUE(sign_request(folder(), read_file(dir_.file("again/a.csr")), Role::kSite, kMonth).ok());
  EXPECT_THAT(message(verify("a.crt", Role::kSite, "a", a_.key_hash)), HasSubstr("pinned"));
  // the same key under a new certificate is still who was pinned
  std::filesystem::remove(file("a.crt"));
  ASSERT_TRUE(sign_request(folder(), text("a.csr"), Role::kSite, kMonth).ok());
  EXPECT_EQ(message(verify("a.crt", Role::kSite, "a", a_.key_hash)), "ok");
}

TEST_F(Certificates, EveryFlippedBitOfBytesOrSignatureIsRefused) {
  const std::string bytes = "mask key";
  const std::string signature = *sign(text("a.key"), bytes);
  EXPECT_TRUE(verify_signature(text("a.crt"), bytes, signature).ok());
  EXPECT_FALSE(verify_signature(text("c.crt"), bytes, signature).ok());
  for (std::size_t i = 0; i < signature.size(); ++i) {
    std::string other = signature;
    other[i] = static_cast<char>(other[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(verify_signature(text("a.crt"), bytes, other).ok()) << i;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(verify_signature(text("a.crt"), other, signature).ok()) << i;
  }
  EXPECT_FALSE(verify_signature(text("a.crt"), bytes, "").ok());
  EXPECT_FALSE(verify_signature(text("a.crt"), bytes + "x", signature).ok());
}

TEST_F(Certificates, AnotherAuthorityIsRefusedEvenOneOfTheSameName) {
  ASSERT_TRUE(make_authority(dir_.file("other"), "heart study", kMonth).ok());
  const Party stranger = make_site(dir_.file("other"), "a");
  const std::string other = read_file(dir_.file("other/a.crt"));
  EXPECT_THAT(message(verify_party(text("ca.crt"), other, Role::kSite, "a", stranger.key_hash)),
              HasSubstr("another authority"));
  // what a site signs with its own key is no certificate of the study
  ASSERT_TRUE(std::filesystem::create_directory(dir_.file("forged")));
  dir_.write_file("forged/ca.crt", text("a.crt"));
  dir_.write_file("forged/ca.key", text("a.key"));
  const Party forged = make_site(dir_.file("forged"), "f");
  const std::string pem = read_file(dir_.file("forged/f.crt"));
  EXPECT_FALSE(verify_party(text("ca.crt"), pem, Role::kSite, "f", forged.key_hash).ok());
  EXPECT_FALSE(verify_party(text("ca.crt") + text("a.crt"), pem, Role::kSite, "f", forged.key_hash).ok())
      << "a site is no authority";
}

TEST_F(Certificates, ExpiredAndFutureCertificatesAreRefused) {
  const Party old = make_site(folder(), "old", {.until = -5});
  const Party early = make_site(folder(), "new", {.from = 600});
  EXPECT_THAT(message(verify("old.crt", Role::kSite, "old", old.key_hash)), HasSubstr("has expired (20"));
  EXPECT_THAT(message(verify("new.crt", Role::kSite, "new", early.key_hash)), HasSubstr("is not valid yet"));
}

TEST_F(Certificates, AnIdentityIsACertificateOfItsRoleAndItsKey) {
  const auto read = [&](Role role, const std::string& certificate, const std::string& key) {
    return Identity::read(role, file("ca.crt"), file(certificate), file(key));
  };
  const auto own = read(Role::kSite, "a.crt", "a.key");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->party.name, "a");
  EXPECT_THAT(message(read(Role::kSite, "c.crt", "c.key")), HasSubstr("is the certificate of a coordinator"));
  EXPECT_THAT(message(read(Role::kSite, "a.crt", "c.key")), HasSubstr("is not the key of"));
  EXPECT_THAT(message(read(Role::kSite, "none.crt", "a.key")), HasSubstr("cannot be read"));
  EXPECT_FALSE(read(Role::kSite, "a.key", "a.key").ok());
}

TEST_F(Certificates, PinsAreNamesAndHashes) {
  dir_.write_file("pins.toml", "a = \"" + a_.key_hash + "\"\n\"St.Mary-2\" = \"" + c_.key_hash + "\"\n");
  const auto pins = read_pins(dir_.file("pins.toml"));
  ASSERT_TRUE(pins.ok());
  EXPECT_EQ(pins->at("a"), a_.key_hash);
  EXPECT_EQ(pins->size(), 2u);
  for (const std::string& text : {std::string(), std::string("a = 5\n"), std::string("a = \"12\"\n"),
                                  "\"a b\" = \"" + a_.key_hash + "\"\n", "a = \"" + std::string(64, 'G') + "\"\n"}) {
    dir_.write_file("bad.toml", text);
    EXPECT_FALSE(read_pins(dir_.file("bad.toml")).ok()) << text;
  }
  EXPECT_FALSE(read_pins(dir_.file("none.toml")).ok());
  std::string deep = "a";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  dir_.write_file("deep.toml", deep + " = 1\n");
  EXPECT_THAT(message(read_pins(dir_.file("deep.toml"))), HasSubstr("more than 16 dots"));
}

TEST_F(Certificates, GarbageIsRefusedInWords) {
  EXPECT_FALSE(sign("", "x").ok());
  EXPECT_FALSE(sign(text("a.crt"), "x").ok());
  EXPECT_FALSE(verify_party("", text("a.crt"), Role::kSite, "a", a_.key_hash).ok());
  EXPECT_FALSE(verify_party(text("ca.crt"), "garbage", Role::kSite, "a", a_.key_hash).ok());
  EXPECT_FALSE(verify_signature("garbage", "x", "y").ok());
  output_of({"openssl", "ec", "-aes128", "-passout", "pass:secret", "-in", file("a.key"), "-out", file("locked.key")});
  EXPECT_FALSE(sign(text("locked.key"), "x").ok());  // and does not ask at the terminal
}

}  // namespace
}  // namespace eigenveil::federation
