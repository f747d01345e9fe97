#include "eigenveil/federation/certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/child.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::federation {
namespace {

using test::output_of;
using test::read_file;
using test::TempDir;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Certificates : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_authority(folder(), "heart study", 30).ok());
    ASSERT_TRUE(issue_certificate(folder(), "a", {"a.example.org", "192.0.2.7", "::1"}, 20).ok());
  }
  std::string folder() const { return dir_.file("study"); }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  std::string text(const std::string& name) const { return read_file(file(name)); }
  std::string described(const std::string& name) const {
    return output_of({"openssl", "x509", "-noout", "-text", "-in", file(name)});
  }
  std::string message(const Status& status) const { return status.ok() ? "ok" : status.error().message; }

  TempDir dir_;
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

TEST_F(Certificates, OpensslAgreesThatTheAuthoritySignedThem) {
  for (const char* purpose : {"sslserver", "sslclient"})
    EXPECT_THAT(output_of({"openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", file("ca.crt"),
                           "-verify_hostname", "a", file("a.crt")}),
                HasSubstr("OK"));
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_ip", "192.0.2.7", file("a.crt")});
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_ip", "::1", file("a.crt")});
  output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_hostname", "a.example.org", file("a.crt")});
  EXPECT_THROW(output_of({"openssl", "verify", "-CAfile", file("ca.crt"), "-verify_hostname", "b", file("a.crt")}),
               std::runtime_error);
}

TEST_F(Certificates, SayWhatTheyAreFor) {
  const std::string ca = described("ca.crt");
  for (const char* part :
       {"CN = heart study", "CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "prime256v1", "ecdsa-with-SHA256"})
    EXPECT_THAT(ca, HasSubstr(part));
  const std::string leaf = described("a.crt");
  for (const char* part : {"Subject: CN = a\n", "CA:FALSE", "Digital Signature", "TLS Web Server Authentication",
                           "TLS Web Client Authentication", "DNS:a, DNS:a.example.org, IP Address:192.0.2.7"})
    EXPECT_THAT(leaf, HasSubstr(part));
  EXPECT_THAT(leaf, Not(HasSubstr("Certificate Sign")));
}

TEST_F(Certificates, HoldForTheDaysGivenAndEndWithTheirAuthority) {
  const auto holds = [&](const std::string& name, long days) {
    return output_of(
        {"sh", "-c",
         "openssl x509 -noout -in " + file(name) + " -checkend " + std::to_string(days * 86400) + " || true"});
  };
  EXPECT_THAT(holds("a.crt", 19), HasSubstr("will not expire"));
  EXPECT_THAT(holds("a.crt", 20), HasSubstr("will expire"));
  ASSERT_TRUE(issue_certificate(folder(), "long", {}, 3650).ok());
  EXPECT_EQ(*valid_until(text("long.crt")), *valid_until(text("ca.crt")));
  EXPECT_THAT(*valid_until(text("a.crt")), MatchesRegex("20..-..-.. ..:.. UTC"));
}

TEST_F(Certificates, KeysAreForTheirOwnerOnlyAndNothingElseIsLeft) {
  EXPECT_EQ(mode_of(file("ca.key")), 0600u);
  EXPECT_EQ(mode_of(file("a.key")), 0600u);
  EXPECT_EQ(mode_of(file("a.crt")), 0644u);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("ca.crt", "ca.key", "a.crt", "a.key"));
}

TEST_F(Certificates, NothingIsOverwritten) {
  const std::string ca = text("ca.key");
  const std::string a = text("a.crt");
  EXPECT_THAT(message(make_authority(folder(), "other", 30)), HasSubstr("never overwritten"));
  EXPECT_THAT(message(issue_certificate(folder(), "a", {}, 30)), HasSubstr("never overwritten"));
  std::filesystem::remove(file("ca.crt"));
  EXPECT_THAT(message(make_authority(folder(), "other", 30)), HasSubstr("ca.key exists"));
  EXPECT_EQ(text("ca.key"), ca);
  EXPECT_EQ(text("a.crt"), a);
}

TEST_F(Certificates, RefuseNamesThatAreNoNames) {
  for (const std::string name : {"", "ca", "CA", "a b", "a/b", "..", ".a", "-a", "a_b", "a\n", "\xc3\xa4"})
    EXPECT_EQ(issue_certificate(folder(), name, {}, 30).error().code, ErrorCode::kUsage) << name;
  EXPECT_FALSE(issue_certificate(folder(), std::string(64, 'x'), {}, 30).ok());
  EXPECT_TRUE(issue_certificate(folder(), std::string(63, 'x'), {}, 30).ok());
  EXPECT_TRUE(issue_certificate(folder(), "St.Mary-2", {}, 30).ok());
  for (const std::string host : {"", "a b", "x,DNS:evil", "300.1.1.1:80", "x\ny"})
    EXPECT_FALSE(issue_certificate(folder(), "b", {host}, 30).ok()) << host;
  for (const int days : {0, -1, 40000}) EXPECT_FALSE(issue_certificate(folder(), "b", {}, days).ok());
  EXPECT_FALSE(make_authority(dir_.file("c"), "", 30).ok());
  EXPECT_FALSE(make_authority(dir_.file("c"), std::string(65, 'x'), 30).ok());
}

TEST_F(Certificates, RefuseAnAuthorityThatIsMissingDamagedMixedUpOrExpired) {
  EXPECT_THAT(message(issue_certificate(dir_.file("nowhere"), "b", {}, 30)), HasSubstr("federation init"));
  ASSERT_TRUE(make_authority(dir_.file("other"), "other", 30).ok());
  const std::string own = text("ca.key");
  std::filesystem::copy_file(dir_.file("other/ca.key"), file("ca.key"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(message(issue_certificate(folder(), "b", {}, 30)), HasSubstr("is not the key of"));
  dir_.write_file("study/ca.key", own.substr(0, own.size() / 2));
  EXPECT_THAT(message(issue_certificate(folder(), "b", {}, 30)), HasSubstr("no PEM private key"));
  ASSERT_TRUE(make_authority(dir_.file("old"), "old", {.until = -60}).ok());
  EXPECT_THAT(message(issue_certificate(dir_.file("old"), "b", {}, 30)), HasSubstr("expired on 20"));
}

TEST_F(Certificates, CommonNameIsTheOneIssued) {
  EXPECT_EQ(*common_name(text("a.crt")), "a");
  EXPECT_FALSE(common_name("").ok());
  EXPECT_FALSE(common_name(text("a.key")).ok());
}

TEST_F(Certificates, TwoCommonNamesAreRefused) {
  output_of({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
             "/CN=a/CN=b", "-keyout", dir_.file("two.key"), "-out", dir_.file("two.crt")});
  EXPECT_THAT(common_name(read_file(dir_.file("two.crt"))).error().message, HasSubstr("more than one"));
}

TEST_F(Certificates, SignaturesAreAcceptedFromTheSignerAlone) {
  std::string bytes("some\0bytes", 10);
  const auto signature = sign(text("a.key"), bytes);
  ASSERT_TRUE(signature.ok());
  EXPECT_EQ(message(verify(text("ca.crt"), text("a.crt"), "a", bytes, *signature)), "ok");
  // a certificate of the same authority and of another name
  ASSERT_TRUE(issue_certificate(folder(), "b", {}, 20).ok());
  EXPECT_THAT(message(verify(text("ca.crt"), text("a.crt"), "b", bytes, *signature)),
              HasSubstr("carries the name 'a', not 'b'"));
  EXPECT_THAT(message(verify(text("ca.crt"), text("b.crt"), "b", bytes, *signature)), HasSubstr("signature"));
  EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "A", bytes, *signature).ok());
  EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "", bytes, *signature).ok());
}

TEST_F(Certificates, EveryFlippedBitOfBytesOrSignatureIsRefused) {
  const std::string bytes = "mask key";
  const std::string signature = *sign(text("a.key"), bytes);
  for (std::size_t i = 0; i < signature.size(); ++i) {
    std::string other = signature;
    other[i] = static_cast<char>(other[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "a", bytes, other).ok()) << i;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "a", other, signature).ok()) << i;
  }
  EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "a", bytes, "").ok());
  EXPECT_FALSE(verify(text("ca.crt"), text("a.crt"), "a", bytes + "x", signature).ok());
}

TEST_F(Certificates, AnotherAuthorityIsRefusedEvenOneOfTheSameName) {
  ASSERT_TRUE(make_authority(dir_.file("other"), "heart study", 30).ok());
  ASSERT_TRUE(issue_certificate(dir_.file("other"), "a", {}, 20).ok());
  const std::string other = read_file(dir_.file("other/a.crt"));
  const std::string signature = *sign(read_file(dir_.file("other/a.key")), "x");
  EXPECT_THAT(message(verify(text("ca.crt"), other, "a", "x", signature)), HasSubstr("another authority"));
  EXPECT_TRUE(verify(read_file(dir_.file("other/ca.crt")), other, "a", "x", signature).ok());
  // what a site issues with its own key is no certificate of the study
  ASSERT_TRUE(std::filesystem::create_directory(dir_.file("forged")));
  dir_.write_file("forged/ca.crt", text("a.crt"));
  dir_.write_file("forged/ca.key", text("a.key"));
  ASSERT_TRUE(issue_certificate(dir_.file("forged"), "c", {}, 10).ok());
  const std::string forged = read_file(dir_.file("forged/c.crt"));
  const std::string by_c = *sign(read_file(dir_.file("forged/c.key")), "x");
  EXPECT_FALSE(verify(text("ca.crt"), forged, "c", "x", by_c).ok());
  EXPECT_FALSE(verify(text("ca.crt") + text("a.crt"), forged, "c", "x", by_c).ok()) << "a site is no authority";
}

TEST_F(Certificates, ExpiredAndFutureCertificatesAreRefused) {
  ASSERT_TRUE(issue_certificate(folder(), "old", {}, {.until = -5}).ok());
  ASSERT_TRUE(issue_certificate(folder(), "new", {}, {.from = 600}).ok());
  EXPECT_THAT(message(verify(text("ca.crt"), text("old.crt"), "old", "x", *sign(text("old.key"), "x"))),
              HasSubstr("has expired (20"));
  EXPECT_THAT(message(verify(text("ca.crt"), text("new.crt"), "new", "x", *sign(text("new.key"), "x"))),
              HasSubstr("is not valid yet"));
}

TEST_F(Certificates, GarbageIsRefusedInWords) {
  EXPECT_FALSE(sign("", "x").ok());
  EXPECT_FALSE(sign(text("a.crt"), "x").ok());
  EXPECT_FALSE(verify("", text("a.crt"), "a", "x", "y").ok());
  EXPECT_FALSE(verify(text("ca.crt"), "garbage", "a", "x", "y").ok());
  output_of({"openssl", "ec", "-aes128", "-passout", "pass:secret", "-in", file("a.key"), "-out", file("locked.key")});
  EXPECT_FALSE(sign(text("locked.key"), "x").ok());  // and does not ask at the terminal
}

}  // namespace
}  // namespace eigenveil::federation
