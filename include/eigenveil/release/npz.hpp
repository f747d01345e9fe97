#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eigenveil/base/named_array.hpp"

namespace eigenveil {

/// A named text member of the archive, e.g. manifest.json.
struct NamedText {
  std::string name;
  std::string text;
};

/// Writes an NPZ in one go: to a temporary file beside `path`, fsynced, then renamed. The bytes depend on the
/// contents alone (no time stamps), so that equal releases are equal files.
Status write_npz(const std::string& path, const std::vector<NamedArray>& arrays, const std::vector<NamedText>& texts);

struct NpzContents {
  std::vector<NamedArray> arrays;
  std::vector<NamedText> texts;
};

/// Reads back what `write_npz` wrote, or any NPZ of small float arrays of one or two dimensions.
Result<NpzContents> read_npz(const std::string& path);

/// Writes a text file the same way: temporary, fsync, rename.
Status write_text_file(const std::string& path, const std::string& text);

/// Tells whether a file could be written to `path`, before anything is spent on what would go into it.
Status check_writable(const std::string& path);

}  // namespace eigenveil
