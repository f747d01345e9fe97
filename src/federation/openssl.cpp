// SPDX-License-Identifier: Apache-2.0
#include "openssl.hpp"

#include <fmt/format.h>
#include <openssl/err.h>

#include <ctime>

namespace eigenveil::federation {

CertificatePtr certificate_from(const std::string& pem) {
  CertificatePtr certificate(PEM_read_bio_X509(read_from(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

KeyPtr key_from(const std::string& pem) {
  // OpenSSL's own callback would ask for a password at the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPtr key(PEM_read_bio_PrivateKey(read_from(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

StorePtr store_from(const std::string& pem) {
  StorePtr store(X509_STORE_new());
  const BioPtr from = read_from(pem);
  int found = 0;
  while (const CertificatePtr certificate{PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr)})
    found += X509_STORE_add_cert(store.get(), certificate.get());
  ERR_clear_error();
  return found > 0 ? std::move(store) : nullptr;
}

std::string text_of(const ASN1_TIME* time) {
  std::tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return "an unreadable date";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", when.tm_year + 1900, when.tm_mon + 1, when.tm_mday,
                     when.tm_hour, when.tm_min);
}

Result<std::string> common_name_of(const X509_NAME* subject) {
  const int first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (first < 0) return bad_input("it has no common name");
  if (X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0)
    return bad_input("it has more than one common name");
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, first)));
  if (size < 0) return bad_input("its common name cannot be read");
  std::string name(utf8, utf8 + size);
  OPENSSL_free(utf8);
  if (name.empty() || name.find('\0') != std::string::npos)
    return bad_input("its common name is empty or has a zero byte");
  return name;
}

std::string trust_fault(int verify_result, const X509* certificate, const std::string& whose) {
  switch (verify_result) {
    case X509_V_OK:
      return "";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("{} is signed by another authority than ca.crt", whose);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      if (X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0) return "the authority's ca.crt has expired";
      return fmt::format("{} has expired ({})", whose, text_of(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      if (X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0)
        return "the authority's ca.crt is not valid yet; compare the clocks";
      return fmt::format("{} is not valid yet (it is from {}; compare the clocks)", whose,
                         text_of(X509_get0_notBefore(certificate)));
    default:
      return fmt::format("{} is not accepted ({})", whose, X509_verify_cert_error_string(verify_result));
  }
}

int verify_chain(X509_STORE* store, X509* certificate) {
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), store, certificate, nullptr) != 1) return X509_V_ERR_UNSPECIFIED;
  const bool good = X509_verify_cert(context.get()) == 1;
  const int result = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return good ? X509_V_OK : result == X509_V_OK ? X509_V_ERR_UNSPECIFIED : result;
}

}  // namespace eigenveil::federation
