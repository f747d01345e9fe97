#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// When a certificate holds, in seconds from now. It starts an hour ago because clocks differ.
struct Validity {
  long long from = -3600;
  long long until = 365LL * 24 * 3600;

  static Validity of_days(int days) { return {.until = days * 24LL * 3600}; }
};

/// Creates FOLDER with ca.crt (PEM) and ca.key (mode 0600): the authority of one study. Refuses to overwrite.
Status make_authority(const std::string& folder, const std::string& study_name, const Validity& validity);
Status make_authority(const std::string& folder, const std::string& study_name, int days);

/// Issues FOLDER/NAME.crt and FOLDER/NAME.key (mode 0600), signed by FOLDER/ca.*, for TLS servers and clients: common
/// name and subjectAltName NAME, and further host names or IP addresses. It ends no later than its authority. Names are
/// 1-63 letters, digits, dots and hyphens. Refuses to overwrite, and refuses the name "ca".
Status issue_certificate(const std::string& folder, const std::string& name, const std::vector<std::string>& hosts,
                         const Validity& validity);
Status issue_certificate(const std::string& folder, const std::string& name, const std::vector<std::string>& hosts,
                         int days);

/// ECDSA (or RSA) with SHA-256 over the bytes, with a PEM private key.
Result<std::string> sign(const std::string& key_pem, const std::string& bytes);

/// Checks such a signature with a PEM certificate, which must be signed by the PEM authority, be valid now, and carry
/// that common name.
Status verify(const std::string& authority_pem, const std::string& certificate_pem, const std::string& name,
              const std::string& bytes, const std::string& signature);

/// Common name of a PEM certificate. It has exactly one.
Result<std::string> common_name(const std::string& certificate_pem);

/// The last moment at which a PEM certificate holds, as "2027-11-16 04:30 UTC".
Result<std::string> valid_until(const std::string& certificate_pem);

}  // namespace eigenveil::federation
