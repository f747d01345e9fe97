// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/named_array.hpp"
#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// A named text member of the archive, e.g. manifest.json.
struct NamedText {
  std::string name;
  std::string text;
};

/// Writes an NPZ that appears whole or not at all (AtomicFile). The bytes depend on the contents alone (no time
/// stamps), so that equal releases are equal files.
Status write_npz(const std::string& path, const std::vector<NamedArray>& arrays, const std::vector<NamedText>& texts,
                 FileModes modes = {});

struct NpzContents {
  std::vector<NamedArray> arrays;
  std::vector<NamedText> texts;
};

/// Reads back what `write_npz` wrote, or any NPZ of small arrays of numbers of one or two dimensions. A file that
/// unpacks to many times its size is refused before memory is taken for it.
Result<NpzContents> read_npz(const std::string& path);

}  // namespace eigenveil
