// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "eigenveil/federation/certificates.hpp"

namespace eigenveil::federation {

// OpenSSL's objects, freed by their owners.
template <auto free_it>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    free_it(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using AlternativeNamesPtr = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using ConnectionPtr = std::unique_ptr<SSL, Freed<SSL_free>>;

/// The bytes as a file to read; they must outlive it.
inline BioPtr read_from(const std::string& bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

/// The first certificate, or null.
CertificatePtr certificate_from(const std::string& pem);

/// A private key without a password, or null.
KeyPtr key_from(const std::string& pem);

/// A store of all certificates in the text; null if there is none.
StorePtr store_from(const std::string& pem);

/// "2027-11-16 04:30 UTC"
std::string text_of(const ASN1_TIME* time);

/// The one common name of a certificate's or request's subject.
Result<std::string> common_name_of(const X509_NAME* subject);

inline void free_extensions(STACK_OF(X509_EXTENSION) * extensions) {
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
}

/// SHA-256 of a public key as certificates hold it, in hexadecimal digits.
std::string key_hash_of(const X509_PUBKEY* key);

/// 1-63 letters, digits, dots and hyphens, a letter or digit first: safe in file names, URIs and on terminals.
bool is_party_name(const std::string& text);

/// What subjectAltName says: exactly one URI eigenveil:ROLE:NAME, and hosts for coordinators only.
Result<Request> names_in(const GENERAL_NAMES* names);

/// Why the certificate, called WHOSE, is not good now under an authority of the store: X509_V_OK has no reason.
std::string trust_fault(int verify_result, const X509* certificate, const std::string& whose);

/// Verifies the chain now: an X509_V_ code.
int verify_chain(X509_STORE* store, X509* certificate);

}  // namespace eigenveil::federation
