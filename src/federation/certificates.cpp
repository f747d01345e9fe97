// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/certificates.hpp"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/printable.hpp"
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

// The authority's own files are ca.crt and ca.key.
Status check_name(const std::string& name) {
  if (!is_party_name(name))
    return usage_error(
        fmt::format("{} is no name for a certificate: 1-63 letters, digits, dots and hyphens, a letter or digit first",
                    quote(name)));
  if (name.size() == 2 && (name[0] | 0x20) == 'c' && (name[1] | 0x20) == 'a')
    return usage_error("'ca' is the authority's own name; choose another");
  return {};
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

bool add_entry(X509_NAME* to, const char* field, const std::string& text) {
  return X509_NAME_add_entry_by_txt(to, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
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

std::string pem_of(X509* certificate) {
  const BioPtr pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(pem.get(), certificate);
  return contents(pem.get());
}

/// PATH.key, and PATH with that ending: both or none.
Status write_with_key(const std::string& path, const std::string& ending, const std::string& pem, EVP_PKEY* key) {
  const BioPtr key_pem(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("writing a key");
  std::string secret = contents(key_pem.get());
  const Status key_written = write_file(path + ".key", secret, {Readers::kOwner, Existing::kRefuse});
  OPENSSL_cleanse(secret.data(), secret.size());
  EIGENVEIL_TRY(key_written);
  Status written = write_file(path + ending, pem, {.existing = Existing::kRefuse});
  if (!written) {
    std::error_code ignored;
    std::filesystem::remove(path + ".key", ignored);
  }
  return written;
}

struct Authority {
  CertificatePtr certificate;
  KeyPtr key;
};

Result<Authority> read_authority(const std::string& folder) {
  const auto certificate_pem = EIGENVEIL_TRY(read_text(folder + "/ca.crt"));
  const auto key_pem = EIGENVEIL_TRY(read_text(folder + "/ca.key"));
  Authority authority{certificate_from(certificate_pem), key_from(key_pem)};
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

/// "URI:eigenveil:site:NAME", or "URI:eigenveil:coordinator:NAME,DNS:NAME,DNS:host,IP:1.2.3.4"
Result<std::string> alternative_names(const Request& request) {
  std::string names = fmt::format("URI:eigenveil:{}:{}", name(request.role), request.name);
  if (request.role == Role::kSite && !request.hosts.empty())
    return usage_error("a site has no host names: it dials out; only a coordinator has a `host`");
  if (request.role == Role::kCoordinator) names += ",DNS:" + request.name;
  for (const std::string& host : request.hosts) {
    ASN1_OCTET_STRING* ip = a2i_IPADDRESS(host.c_str());
    const bool is_ip = ip != nullptr;
    ASN1_OCTET_STRING_free(ip);
    ERR_clear_error();
    if (!is_ip && (host.empty() || host.size() > 253 || !in_alphabet(host)))
      return usage_error(fmt::format("{} is neither a host name nor an IP address", quote(host)));
    if (host != request.name) names += (is_ip ? ",IP:" : ",DNS:") + host;
  }
  return names;
}

bool ask_for_names(X509_REQ* csr, const std::string& names) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
  const bool added = extension != nullptr && sk_X509_EXTENSION_push(extensions, extension) > 0 &&
                     X509_REQ_add_extensions(csr, extensions) == 1;
  if (!added) X509_EXTENSION_free(extension);
  free_extensions(extensions);
  return added;
}

}  // namespace

Result<Validity> Validity::of_days(int days) {
  if (days < 1 || days > 36500)
    return usage_error(fmt::format("a certificate holds for 1 to 36500 days, not {}", days));
  return Validity{.until = days * 24LL * 3600};
}

Status make_authority(const std::string& folder, const std::string& study_name, const Validity& validity) {
  if (study_name.empty() || study_name.size() > 64)
    return usage_error("the name of a study has 1 to 64 bytes; give another `name`");
  EIGENVEIL_TRY(check_new(folder + "/ca.crt"));
  EIGENVEIL_TRY(check_new(folder + "/ca.key"));
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return usage_error(fmt::format("the folder {} cannot be made ({})", folder, failure.message()));

  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("making a key");
  const CertificatePtr made = blank(key.get(), validity);
  X509* ca = made.get();
  // The organisation keeps the authority's name apart from every name that it issues.
  if (!made || !add_entry(X509_get_subject_name(ca), "O", "Eigenveil federation") ||
      !add_entry(X509_get_subject_name(ca), "CN", study_name))
    return openssl_failed("naming the authority (is the name UTF-8?)");
  if (X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 ||
      !add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(ca, ca, NID_subject_key_identifier, "hash") ||
      !add_extension(ca, ca, NID_authority_key_identifier, "keyid") || X509_sign(ca, key.get(), EVP_sha256()) == 0)
    return openssl_failed("making the authority's certificate");
  return write_with_key(folder + "/ca", ".crt", pem_of(ca), key.get());
}

Result<std::string> make_request(const std::string& path, const Request& request) {
  EIGENVEIL_TRY(check_name(request.name));
  EIGENVEIL_TRY(check_new(path + ".csr"));
  EIGENVEIL_TRY(check_new(path + ".key"));
  const auto names = EIGENVEIL_TRY(alternative_names(request));
  const KeyPtr key(EVP_EC_gen("P-256"));
  const RequestPtr made(X509_REQ_new());
  X509_REQ* csr = made.get();
  if (!key || !csr || X509_REQ_set_version(csr, X509_REQ_VERSION_1) != 1 || X509_REQ_set_pubkey(csr, key.get()) != 1 ||
      !add_entry(X509_REQ_get_subject_name(csr), "CN", request.name) || !ask_for_names(csr, names) ||
      X509_REQ_sign(csr, key.get(), EVP_sha256()) == 0)
    return openssl_failed("making a request");
  const BioPtr pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(pem.get(), csr) != 1) return openssl_failed("writing a request");
  EIGENVEIL_TRY(write_with_key(path, ".csr", contents(pem.get()), key.get()));
  return key_hash_of(X509_REQ_get_X509_PUBKEY(csr));
}

Result<Requested> read_request(const std::string& csr_pem) {
  const RequestPtr csr(PEM_read_bio_X509_REQ(read_from(csr_pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!csr) return bad_input("this is no request for a certificate: 'eigenveil federation request' makes one");
  EVP_PKEY* key = X509_REQ_get0_pubkey(csr.get());
  const bool own = key != nullptr && X509_REQ_verify(csr.get(), key) == 1;
  ERR_clear_error();
  if (!own) return bad_input("the request is not signed by the key that it is for");
  if (EVP_PKEY_get_security_bits(key) < 112)
    return bad_input("the request's key is too weak: make a new one with 'eigenveil federation request'");
  const auto common = EIGENVEIL_TRY(common_name_of(X509_REQ_get_subject_name(csr.get())));
  const std::unique_ptr<STACK_OF(X509_EXTENSION), Freed<free_extensions>> extensions(
      X509_REQ_get_extensions(csr.get()));
  const AlternativeNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  const auto claimed = names_in(names.get());
  if (!claimed) return Error{claimed.error().code, "the request: " + claimed.error().message};
  if (claimed->name != common) return bad_input("the request has two names");
  EIGENVEIL_TRY(check_name(common));
  return Requested{*claimed, key_hash_of(X509_REQ_get_X509_PUBKEY(csr.get()))};
}

Result<Party> sign_request(const std::string& folder, const std::string& csr_pem, Role role, const Validity& validity) {
  const auto asked = EIGENVEIL_TRY(read_request(csr_pem));
  const Request& request = asked.request;
  if (request.role != role)
    return usage_error(
        fmt::format("the request is for the {} {}, not for a {}: sign it with `role` {} only if that is "
                    "what {} is",
                    name(request.role), quote(request.name), name(role), name(request.role), quote(request.name)));
  const std::string path = folder + "/" + request.name + ".crt";
  EIGENVEIL_TRY(check_new(path));
  const auto names = EIGENVEIL_TRY(alternative_names(request));
  const auto authority = EIGENVEIL_TRY(read_authority(folder));
  X509* ca = authority.certificate.get();

  const RequestPtr csr(PEM_read_bio_X509_REQ(read_from(csr_pem).get(), nullptr, nullptr, nullptr));
  const CertificatePtr made = blank(X509_REQ_get0_pubkey(csr.get()), validity);
  X509* certificate = made.get();
  if (!made || !add_entry(X509_get_subject_name(certificate), "CN", request.name) ||
      X509_set_issuer_name(certificate, X509_get_subject_name(ca)) != 1)
    return openssl_failed("naming a certificate");
  if (ASN1_TIME_compare(X509_get0_notAfter(certificate), X509_get0_notAfter(ca)) > 0 &&
      X509_set1_notAfter(certificate, X509_get0_notAfter(ca)) != 1)
    return openssl_failed("dating a certificate");
  if (!add_extension(certificate, ca, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, ca, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, ca, NID_ext_key_usage, role == Role::kSite ? "clientAuth" : "serverAuth") ||
      !add_extension(certificate, ca, NID_subject_alt_name, names) ||
      !add_extension(certificate, ca, NID_subject_key_identifier, "hash") ||
      !add_extension(certificate, ca, NID_authority_key_identifier, "keyid") ||
      X509_sign(certificate, authority.key.get(), EVP_sha256()) == 0)
    return openssl_failed("making a certificate");
  const std::string pem = pem_of(certificate);
  // What is issued is what everybody will accept.
  auto party = EIGENVEIL_TRY(party_of(pem));
  EIGENVEIL_TRY(write_file(path, pem, {.existing = Existing::kRefuse}));
  return party;
}

}  // namespace eigenveil::federation
