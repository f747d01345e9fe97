// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/protocol.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include "eigenveil/federation/chain.hpp"

namespace eigenveil::federation {

std::string draw_study() {
  std::string study(kStudyBytes, '\0');
  randombytes_buf(study.data(), study.size());
  return study;
}

std::string study_text(const std::string& study) { return hex(study); }

std::string other_version(std::uint32_t theirs) {
  return fmt::format(
      "it speaks version {} of the protocol, this end version {}: use the same release of eigenveil at both", theirs,
      kWireVersion);
}

std::string proposal_statement(const std::string& proposal_hash) { return "eigenveil proposal 2" + proposal_hash; }
std::string accept_statement(const std::string& statement) { return "eigenveil accept 2" + statement; }

}  // namespace eigenveil::federation
