// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// What a party of a study is; its certificate says so, and it is never both.
enum class Role { kSite, kCoordinator };
const char* name(Role role);
Result<Role> role_from_name(const std::string& text);

/// Who a certificate belongs to.
struct Party {
  std::string name;
  Role role = Role::kSite;
  std::string key_hash;         ///< SHA-256 of its public key (SubjectPublicKeyInfo), 64 lowercase hexadecimal digits
  std::int64_t not_after = 0;   ///< seconds since 1970
  std::string valid_until_utc;  ///< the same as "2027-11-16 04:30 UTC"
};

/// Keys of parties by their names, learnt from the parties themselves and not from whoever runs the study.
using Pins = std::map<std::string, std::string>;
/// A table of names and key hashes, `hospital-a = "4f0c..."`, as a TOML file of its own.
Result<Pins> read_pins(const std::string& path);
Status check_pin(const std::string& name, const std::string& key_hash);

/// When a certificate holds, in seconds from now. It starts an hour ago because clocks differ.
struct Validity {
  long long from = -3600;
  long long until = 365LL * 24 * 3600;

  static Result<Validity> of_days(int days);
};

/// Creates FOLDER with ca.crt (PEM) and ca.key (mode 0600): the authority of one study. Refuses to overwrite.
Status make_authority(const std::string& folder, const std::string& study_name, const Validity& validity);

/// What a party asks the authority to certify. Names are 1-63 letters, digits, dots and hyphens. Only a coordinator has
/// host names or IP addresses, under which sites dial it.
struct Request {
  std::string name;
  Role role = Role::kSite;
  std::vector<std::string> hosts = {};
};

/// The party's own key, made where it will be used, and the request for its certificate: PATH.key (mode 0600) and
/// PATH.csr. Refuses to overwrite. The key never travels. Returns the key's hash.
Result<std::string> make_request(const std::string& path, const Request& request);

/// What a request asks for and the hash of its key; the request must be signed by that key.
struct Requested {
  Request request;
  std::string key_hash;
};
Result<Requested> read_request(const std::string& csr_pem);

/// Signs a request with FOLDER/ca.*: FOLDER/NAME.crt, for the role that the authority names and no other. Of the
/// request only what `Request` has is taken over. It ends no later than its authority. A name is signed once.
Result<Party> sign_request(const std::string& folder, const std::string& csr_pem, Role role, const Validity& validity);

/// Whose certificate this is. A site's has exactly: one common name, the same name in a URI eigenveil:site:NAME, the
/// use clientAuth; a coordinator's eigenveil:coordinator:NAME, serverAuth, and host names. Anything else is refused: no
/// role, two of them, two names, an authority.
Result<Party> party_of(const std::string& certificate_pem);

/// That the certificate is signed by the authority, holds now, and belongs to this role, this name and this key.
Status verify_party(const std::string& authority_pem, const std::string& certificate_pem, Role role,
                    const std::string& name, const std::string& key_hash);

/// ECDSA (or RSA) with SHA-256 over the bytes, with a PEM private key; and whether it was made with the key of a PEM
/// certificate, about which nothing else is checked here.
Result<std::string> sign(const std::string& key_pem, const std::string& bytes);
Status verify_signature(const std::string& certificate_pem, const std::string& bytes, const std::string& signature);

/// A party's own certificate and key, and the authority that all trust, as PEM text.
struct Identity {
  std::string authority;
  std::string certificate;
  std::string key;
  Party party;

  /// From files. The key must be that of the certificate, and the certificate must be for that role.
  static Result<Identity> read(Role role, const std::string& authority, const std::string& certificate,
                               const std::string& key);
};

}  // namespace eigenveil::federation
