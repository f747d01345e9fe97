// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// To know data again under other names: the keyed hash (BLAKE2b) of a file's bytes, or of a folder: of the sorted
/// hashes of all files in it, whatever their names. 64 hexadecimal digits. And that of each file of a folder that may
/// hold rows of its own: what readers pass over (names that begin with a dot or an underscore), empty files and images,
/// of which each is a single row, are not among them. The key has 16 to 64 bytes; whoever lacks it cannot try out what
/// a file holds.
struct ContentKeys {
  struct Part {
    std::string path;
    std::string content;
  };
  std::string whole;
  std::vector<Part> parts;  ///< none of a file
};
Result<ContentKeys> content_keys(const std::string& path, std::string_view key);

/// To pin data for the length of a study or a run, rows and all: of a folder, the names of its files count too, since
/// names decide which of them are read and as what.
Result<std::string> named_content_key(const std::string& path, std::string_view key);

}  // namespace eigenveil
