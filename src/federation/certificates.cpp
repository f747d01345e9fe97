#include "eigenveil/federation/certificates.hpp"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "new_file.hpp"
#include "openssl.hpp"

namespace eigenveil::federation {
namespace {

Error openssl_failed(const char* doing) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return internal_error(fmt::format("OpenSSL failed while {}: {}", doing, reason != nullptr ? reason : "no reason"));
}

bool in_alphabet(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  });
}

Status check_name(const std::string& name) {
  if (name.empty() || name.size() > 63 || !in_alphabet(name) || name.front() == '.' || name.front() == '-')
    return usage_error(fmt::format(
        "'{}' is no name for a certificate: 1-63 letters, digits, dots and hyphens, a letter or digit first", name));
  if (name.size() == 2 && (name[0] | 0x20) == 'c' && (name[1] | 0x20) == 'a')
    return usage_error("'ca' is the authority's own name; choose another");
  return {};
}

Status check_days(int days) {
  if (days >= 1 && days <= 36500) return {};
  return usage_error(fmt::format("a certificate holds for 1 to 36500 days, not {}", days));
}

Status check_new(const std::string& path) {
  if (!std::filesystem::exists(std::filesystem::symlink_status(path))) return {};
  return usage_error(
      fmt::format("{} exists already and is never overwritten; move it away or choose another name", path));
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(fmt::format("{} cannot be read; 'eigenveil federation init' makes it", path));
  return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool add_extension(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool add_subject(X509* certificate, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()),
                                    -1, 0) == 1;
}

bool add_random_serial(X509* certificate) {
  BIGNUM* number = BN_new();
  const bool done = BN_rand(number, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 && BN_set_bit(number, 126) == 1 &&
                    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return done;
}

bool add_time(ASN1_TIME* time, long long seconds_from_now) {
  constexpr long long kDay = 86400;
  return X509_time_adj_ex(time, static_cast<int>(seconds_from_now / kDay), static_cast<long>(seconds_from_now % kDay),
                          nullptr) != nullptr;
}

/// What every certificate has; the caller adds names and extensions, and signs.
CertificatePtr blank(EVP_PKEY* key, const Validity& validity) {
  CertificatePtr certificate(X509_new());
  const bool done =
      certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 && add_random_serial(certificate.get()) &&
      add_time(X509_getm_notBefore(certificate.get()), validity.from) &&
      add_time(X509_getm_notAfter(certificate.get()), validity.until) && X509_set_pubkey(certificate.get(), key) == 1;
  return done ? std::move(certificate) : nullptr;
}

std::string contents(BIO* bio) {
  char* first = nullptr;
  const long size = BIO_get_mem_data(bio, &first);
  return {first, first + size};
}

/// PATH.crt and PATH.key, both or none.
Status write_pair(const std::string& path, X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_pem(BIO_new(BIO_s_mem()));
  const BioPtr key_pem(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(certificate_pem.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("writing a certificate");
  std::string secret = contents(key_pem.get());
  const Status key_written = write_new_file(path + ".key", secret, 0600);
  OPENSSL_cleanse(secret.data(), secret.size());
  EIGENVEIL_TRY(key_written);
  Status written = write_new_file(path + ".crt", contents(certificate_pem.get()), 0644);
  if (!written) {
    std::error_code ignored;
    std::filesystem::remove(path + ".key", ignored);
  }
  return written;
}

Status check_pair_is_new(const std::string& path) {
  EIGENVEIL_TRY(check_new(path + ".crt"));
  return check_new(path + ".key");
}

struct Authority {
  CertificatePtr certificate;
  KeyPtr key;
};

Result<Authority> read_authority(const std::string& folder) {
  const auto certificate_pem = read_text(folder + "/ca.crt");
  if (!certificate_pem) return certificate_pem.error();
  const auto key_pem = read_text(folder + "/ca.key");
  if (!key_pem) return key_pem.error();
  Authority authority{certificate_from(*certificate_pem), key_from(*key_pem)};
  if (!authority.certificate) return bad_input(fmt::format("{}/ca.crt is no PEM certificate", folder));
  if (!authority.key) return bad_input(fmt::format("{}/ca.key is no PEM private key without a password", folder));
  if (X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return bad_input(fmt::format("{0}/ca.key is not the key of {0}/ca.crt", folder));
  }
  const ASN1_TIME* end = X509_get0_notAfter(authority.certificate.get());
  if (X509_cmp_current_time(end) <= 0)
    return bad_input(
        fmt::format("the authority {}/ca.crt expired on {}; make a new one with 'eigenveil federation init'", folder,
                    text_of(end)));
  return authority;
}

/// "DNS:name,DNS:host,IP:1.2.3.4"
Result<std::string> alternative_names(const std::string& name, const std::vector<std::string>& hosts) {
  std::string names = "DNS:" + name;
  for (const std::string& host : hosts) {
    ASN1_OCTET_STRING* ip = a2i_IPADDRESS(host.c_str());
    const bool is_ip = ip != nullptr;
    ASN1_OCTET_STRING_free(ip);
    ERR_clear_error();
    if (!is_ip && (host.empty() || host.size() > 253 || !in_alphabet(host)))
      return usage_error(fmt::format("'{}' is neither a host name nor an IP address", host));
    names += (is_ip ? ",IP:" : ",DNS:") + host;
  }
  return names;
}

}  // namespace

Status make_authority(const std::string& folder, const std::string& study_name, const Validity& validity) {
  if (study_name.empty() || study_name.size() > 64)
    return usage_error("the name of a study has 1 to 64 bytes; give another --name");
  EIGENVEIL_TRY(check_pair_is_new(folder + "/ca"));
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return usage_error(fmt::format("the folder {} cannot be made ({})", folder, failure.message()));

  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("making a key");
  const CertificatePtr made = blank(key.get(), validity);
  X509* ca = made.get();
  // The organisation keeps the authority's name apart from every name that it issues.
  if (!made || !add_subject(ca, "O", "Eigenveil federation") || !add_subject(ca, "CN", study_name))
    return openssl_failed("naming the authority (is the name UTF-8?)");
  if (X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 ||
      !add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(ca, ca, NID_subject_key_identifier, "hash") ||
      !add_extension(ca, ca, NID_authority_key_identifier, "keyid") || X509_sign(ca, key.get(), EVP_sha256()) == 0)
    return openssl_failed("making the authority's certificate");
  return write_pair(folder + "/ca", ca, key.get());
}

Status make_authority(const std::string& folder, const std::string& study_name, int days) {
  EIGENVEIL_TRY(check_days(days));
  return make_authority(folder, study_name, Validity::of_days(days));
}

Status issue_certificate(const std::string& folder, const std::string& name, const std::vector<std::string>& hosts,
                         const Validity& validity) {
  EIGENVEIL_TRY(check_name(name));
  const std::string path = folder + "/" + name;
  EIGENVEIL_TRY(check_pair_is_new(path));
  const auto names = alternative_names(name, hosts);
  if (!names) return names.error();
  const auto authority = read_authority(folder);
  if (!authority) return authority.error();
  X509* ca = authority->certificate.get();

  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("making a key");
  const CertificatePtr made = blank(key.get(), validity);
  X509* certificate = made.get();
  if (!made || !add_subject(certificate, "CN", name) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(ca)) != 1)
    return openssl_failed("naming a certificate");
  if (ASN1_TIME_compare(X509_get0_notAfter(certificate), X509_get0_notAfter(ca)) > 0 &&
      X509_set1_notAfter(certificate, X509_get0_notAfter(ca)) != 1)
    return openssl_failed("dating a certificate");
  if (!add_extension(certificate, ca, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, ca, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, ca, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add_extension(certificate, ca, NID_subject_alt_name, *names) ||
      !add_extension(certificate, ca, NID_subject_key_identifier, "hash") ||
      !add_extension(certificate, ca, NID_authority_key_identifier, "keyid") ||
      X509_sign(certificate, authority->key.get(), EVP_sha256()) == 0)
    return openssl_failed("making a certificate");
  return write_pair(path, certificate, key.get());
}

Status issue_certificate(const std::string& folder, const std::string& name, const std::vector<std::string>& hosts,
                         int days) {
  EIGENVEIL_TRY(check_days(days));
  return issue_certificate(folder, name, hosts, Validity::of_days(days));
}

Result<std::string> sign(const std::string& key_pem, const std::string& bytes) {
  const KeyPtr key = key_from(key_pem);
  if (!key) return bad_input("the private key is no PEM key without a password");
  const DigestPtr digest(EVP_MD_CTX_new());
  const auto* first = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t size = 0;
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &size, first, bytes.size()) != 1)
    return openssl_failed("signing");
  std::string signature(size, '\0');
  if (EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, first, bytes.size()) != 1)
    return openssl_failed("signing");
  signature.resize(size);
  return signature;
}

Status verify(const std::string& authority_pem, const std::string& certificate_pem, const std::string& name,
              const std::string& bytes, const std::string& signature) {
  const StorePtr store = store_from(authority_pem);
  if (!store) return bad_input("ca.crt is no PEM certificate");
  const CertificatePtr certificate = certificate_from(certificate_pem);
  if (!certificate) return bad_input(fmt::format("the certificate of '{}' is no PEM certificate", name));
  const int trust = verify_chain(store.get(), certificate.get());
  if (trust != X509_V_OK)
    return bad_input(trust_fault(trust, certificate.get(), fmt::format("the certificate of '{}'", name)));
  const auto carried = common_name_of(certificate.get());
  if (!carried) return carried.error();
  if (*carried != name)
    return bad_input(fmt::format("the certificate carries the name '{}', not '{}'", *carried, name));

  const DigestPtr digest(EVP_MD_CTX_new());
  const bool good =
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(certificate.get())) == 1 &&
      EVP_DigestVerify(digest.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
  ERR_clear_error();
  if (!good) return bad_input(fmt::format("the signature is not that of '{}' over these bytes", name));
  return {};
}

Result<std::string> common_name(const std::string& certificate_pem) {
  const CertificatePtr certificate = certificate_from(certificate_pem);
  if (!certificate) return bad_input("this is no PEM certificate");
  return common_name_of(certificate.get());
}

Result<std::string> valid_until(const std::string& certificate_pem) {
  const CertificatePtr certificate = certificate_from(certificate_pem);
  if (!certificate) return bad_input("this is no PEM certificate");
  return text_of(X509_get0_notAfter(certificate.get()));
}

}  // namespace eigenveil::federation
