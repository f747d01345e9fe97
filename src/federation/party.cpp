// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/sha.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "../data/toml_file.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/certificates.hpp"
#include "openssl.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::string_view kScheme = "eigenveil:";

Error with_prefix(const std::string& prefix, const Error& error) { return {error.code, prefix + error.message}; }

std::string text_of_name(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// "eigenveil:site:NAME"
Result<Request> party_in(const std::string& uri) {
  const std::size_t colon = uri.find(':', kScheme.size());
  if (!uri.starts_with(kScheme) || colon == std::string::npos)
    return bad_input(fmt::format("{} names no party of a study", quote(uri)));
  const auto role = EIGENVEIL_TRY(role_from_name(uri.substr(kScheme.size(), colon - kScheme.size())));
  std::string name = uri.substr(colon + 1);
  if (!is_party_name(name)) return bad_input(fmt::format("{} is no name of a party", quote(name)));
  return Request{std::move(name), role};
}

// The one use that the role has in TLS.
Status check_use(X509* certificate, Role role) {
  const std::unique_ptr<EXTENDED_KEY_USAGE, Freed<EXTENDED_KEY_USAGE_free>> uses(
      static_cast<EXTENDED_KEY_USAGE*>(X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  ERR_clear_error();
  const int wanted = role == Role::kSite ? NID_client_auth : NID_server_auth;
  if (!uses || sk_ASN1_OBJECT_num(uses.get()) != 1 || OBJ_obj2nid(sk_ASN1_OBJECT_value(uses.get(), 0)) != wanted)
    return bad_input(fmt::format("its use in TLS is not that of a {} alone", name(role)));
  return {};
}

Result<Party> party_in(X509* certificate) {
  if (X509_check_ca(certificate) != 0) return bad_input("it is that of an authority, not of a party");
  const auto common = EIGENVEIL_TRY(common_name_of(X509_get_subject_name(certificate)));
  const AlternativeNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  const auto claimed = EIGENVEIL_TRY(names_in(names.get()));
  if (claimed.name != common)
    return bad_input(fmt::format("it has two names, {} and {}", quote(common), quote(claimed.name)));
  EIGENVEIL_TRY(check_use(certificate, claimed.role));
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  std::tm when{};
  if (ASN1_TIME_to_tm(end, &when) != 1) return bad_input("its date cannot be read");
  return Party{claimed.name, claimed.role, key_hash_of(X509_get_X509_PUBKEY(certificate)), ::timegm(&when),
               text_of(end)};
}

}  // namespace

const char* name(Role role) { return role == Role::kSite ? "site" : "coordinator"; }

Result<Role> role_from_name(const std::string& text) {
  for (const Role role : {Role::kSite, Role::kCoordinator})
    if (text == name(role)) return role;
  return bad_input(fmt::format("{} is no role: known are site and coordinator", quote(text)));
}

bool is_party_name(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || c == '.' || c == '-'; });
}

std::string key_hash_of(const X509_PUBKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(key, &der);
  unsigned char digest[SHA256_DIGEST_LENGTH] = {};
  if (size > 0) SHA256(der, size, digest);
  OPENSSL_free(der);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return size > 0 ? text : "";
}

Result<Request> names_in(const GENERAL_NAMES* names) {
  std::optional<Request> party;
  std::vector<std::string> hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(names, i);
    if (one->type == GEN_URI) {
      if (party) return bad_input("it has two roles or names");
      party = EIGENVEIL_TRY(party_in(text_of_name(one->d.uniformResourceIdentifier)));
    } else if (one->type == GEN_DNS) {
      hosts.push_back(text_of_name(one->d.dNSName));
    } else if (one->type == GEN_IPADD) {
      const BioPtr out(BIO_new(BIO_s_mem()));
      GENERAL_NAME_print(out.get(), const_cast<GENERAL_NAME*>(one));
      char* first = nullptr;
      const long size = BIO_get_mem_data(out.get(), &first);
      hosts.push_back(std::string(first, first + size).substr(std::string_view("IP Address:").size()));
    } else {
      return bad_input("it has a name of a kind that no party has");
    }
  }
  if (!party) return bad_input("it says neither site nor coordinator: 'eigenveil federation request' asks for a role");
  if (party->role == Role::kSite && !hosts.empty()) return bad_input("a site has no host names");
  party->hosts = std::move(hosts);
  return *party;
}

Result<Party> party_of(const std::string& certificate_pem) {
  const CertificatePtr certificate = certificate_from(certificate_pem);
  if (!certificate) return bad_input("this is no PEM certificate");
  auto party = party_in(certificate.get());
  if (!party) return with_prefix("the certificate is that of no party: ", party.error());
  return party;
}

Status verify_party(const std::string& authority_pem, const std::string& certificate_pem, Role role,
                    const std::string& name, const std::string& key_hash) {
  const StorePtr store = store_from(authority_pem);
  if (!store) return bad_input("ca.crt is no PEM certificate");
  const CertificatePtr certificate = certificate_from(certificate_pem);
  const std::string whose = fmt::format("the certificate of the {} {}", federation::name(role), quote(name));
  if (!certificate) return bad_input(whose + " is no PEM certificate");
  const int trust = verify_chain(store.get(), certificate.get());
  if (trust != X509_V_OK) return bad_input(trust_fault(trust, certificate.get(), whose));
  const auto party = party_in(certificate.get());
  if (!party) return with_prefix(whose + " cannot be used: ", party.error());
  if (party->role != role) return bad_input(fmt::format("{} is that of a {}", whose, federation::name(party->role)));
  if (party->name != name) return bad_input(fmt::format("{} carries the name '{}'", whose, party->name));
  if (party->key_hash != key_hash)
    return bad_input(
        fmt::format("{} has the key {}, but {} is expected (pinned)", whose, party->key_hash, printable(key_hash)));
  return {};
}

Result<std::string> sign(const std::string& key_pem, const std::string& bytes) {
  const KeyPtr key = key_from(key_pem);
  if (!key) return bad_input("the private key is no PEM key without a password");
  const DigestPtr digest(EVP_MD_CTX_new());
  const auto* first = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t size = 0;
  std::string signature;
  bool done = EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
              EVP_DigestSign(digest.get(), nullptr, &size, first, bytes.size()) == 1;
  signature.resize(size);
  done = done && EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, first,
                                bytes.size()) == 1;
  ERR_clear_error();
  if (!done) return internal_error("OpenSSL failed while signing");
  signature.resize(size);
  return signature;
}

Status verify_signature(const std::string& certificate_pem, const std::string& bytes, const std::string& signature) {
  const CertificatePtr certificate = certificate_from(certificate_pem);
  if (!certificate) return bad_input("the signer's certificate is no PEM certificate");
  const DigestPtr digest(EVP_MD_CTX_new());
  const bool good =
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(certificate.get())) == 1 &&
      EVP_DigestVerify(digest.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
  ERR_clear_error();
  if (!good) return bad_input("the signature is not that of the certificate's key over these bytes");
  return {};
}

Status check_pin(const std::string& name, const std::string& key_hash) {
  if (!is_party_name(name)) return bad_input(fmt::format("{} is no name of a party", quote(name)));
  const bool hex =
      std::ranges::all_of(key_hash, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (key_hash.size() == 64 && hex) return {};
  return bad_input(
      fmt::format("{} is no key of '{}': expected are the 64 hexadecimal digits that 'eigenveil federation "
                  "show' prints",
                  quote(key_hash), name));
}

Result<Pins> read_pins(const std::string& path) {
  const auto root = EIGENVEIL_TRY(data::read_toml(path));
  Pins pins;
  for (const auto& [key, node] : root) {
    const std::string name(key.str());
    const auto hash = node.value_exact<std::string>();
    if (!hash) return bad_input(fmt::format("{}: the key of {} must be a text", path, quote(name)));
    if (const auto checked = check_pin(name, *hash); !checked) return with_prefix(path + ": ", checked.error());
    pins.emplace(name, *hash);
  }
  if (pins.empty()) return bad_input(path + ": there is no site in it; write hospital-a = \"...\", one line per site");
  return pins;
}

Result<Identity> Identity::read(Role role, const std::string& authority, const std::string& certificate,
                                const std::string& key) {
  Identity identity;
  for (const auto& [path, to] :
       {std::pair{&authority, &identity.authority}, {&certificate, &identity.certificate}, {&key, &identity.key}}) {
    std::ifstream in(*path, std::ios::binary);
    to->assign(std::istreambuf_iterator<char>(in), {});
    if (!in.eof() && in.fail()) return bad_input(fmt::format("{}: the file cannot be read", *path));
  }
  auto party = party_of(identity.certificate);
  if (!party) return with_prefix(certificate + ": ", party.error());
  if (party->role != role)
    return bad_input(
        fmt::format("{}: is the certificate of a {}, not of a {}", certificate, name(party->role), name(role)));
  const KeyPtr own = key_from(identity.key);
  if (!own) return bad_input(fmt::format("{}: is no PEM key without a password", key));
  const bool fits = X509_check_private_key(certificate_from(identity.certificate).get(), own.get()) == 1;
  ERR_clear_error();
  if (!fits) return bad_input(fmt::format("{}: is not the key of {}", key, certificate));
  identity.party = *std::move(party);
  return identity;
}

}  // namespace eigenveil::federation
