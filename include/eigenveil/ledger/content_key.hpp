// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// To know data again under other names: the keyed hash (BLAKE2b) of a file's bytes, or of a folder: of the sorted
/// hashes of all files in it, whatever their names; one that cannot be read has a fixed hash. 64 hexadecimal digits.
/// And that of each file of a folder that may hold rows, were it a single one, as an image is: what readers pass over
/// (names that begin with a dot, and with an underscore but for images) and empty files are not among them. The key has
/// 16 to 64 bytes; whoever lacks it cannot try out what a file holds.
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
