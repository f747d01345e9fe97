// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "eigenveil/base/result.hpp"
#include "keyed_hash.hpp"

namespace eigenveil::ledger {

/// The last generation of a ledger that is known to be on disk, and its checksum.
struct Mark {
  std::uint64_t generation = 0;
  Checksum checksum{};
  friend bool operator==(const Mark&, const Mark&) = default;
};

/// A small file outside the database that remembers the last mark: an older copy of the database is behind it.
/// A file that is gone remembers nothing; one that holds no mark gives one that no ledger has. A link to a file that is
/// gone is an error, unless the ledger has not begun and the file is yet to be made.
Result<Mark> read_anchor(const std::string& path, bool begun);
/// Writes the mark, fsynced, unless a later one is there already.
Status raise_anchor(const std::string& path, const Mark& mark);

}  // namespace eigenveil::ledger
