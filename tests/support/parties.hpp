// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "eigenveil/federation/certificates.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {

/// FOLDER/NAME.key, .csr and .crt: a party that makes its key where the authority's is, as happens in tests only.
inline federation::Party make_party(const std::string& folder, const std::string& name, federation::Role role,
                                    const std::vector<std::string>& hosts = {},
                                    const federation::Validity& validity = {}) {
  const auto made = federation::make_request(folder + "/" + name, {name, role, hosts});
  if (!made) throw std::runtime_error(made.error().message);
  const auto party = federation::sign_request(folder, read_file(folder + "/" + name + ".csr"), role, validity);
  if (!party) throw std::runtime_error(party.error().message);
  return *party;
}

inline federation::Party make_site(const std::string& folder, const std::string& name,
                                   const federation::Validity& validity = {}) {
  return make_party(folder, name, federation::Role::kSite, {}, validity);
}

inline federation::Identity identity_of(const std::string& folder, const std::string& name, federation::Role role) {
  const std::string path = folder + "/" + name;
  auto identity = federation::Identity::read(role, folder + "/ca.crt", path + ".crt", path + ".key");
  if (!identity) throw std::runtime_error(identity.error().message);
  return *std::move(identity);
}

}  // namespace eigenveil::test
