// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Lattice rows in chunks of equal size: in memory up to a limit, beyond it in an unnamed temporary file that
/// vanishes with the process, killed or not.
class ChunkStore {
 public:
  struct Options {
    std::size_t memory_bytes;    ///< rows beyond this go to the file
    std::string spill_folder;    ///< where that file is made; empty: $TMPDIR, or /var/tmp
    std::size_t chunk_rows = 0;  ///< 0: about 2 MiB per chunk
  };
  ChunkStore(std::size_t columns, Options options);

  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }
  std::size_t chunk_rows() const { return chunk_rows_; }
  std::size_t chunks() const { return (rows_ + chunk_rows_ - 1) / chunk_rows_; }
  std::size_t rows_in(std::size_t chunk) const;
  bool spilled() const { return file_ != nullptr; }

  Status append(const std::int32_t* rows, std::size_t count);

  /// Says that an empty store has that many rows, to be filled by `put`, `at` or `write`; zero until then. Memory is
  /// taken chunk by chunk as they are.
  Status allot(std::size_t rows);
  /// Rows at their place in a store that was allotted.
  Status put(std::size_t first, const std::int32_t* rows, std::size_t count);
  /// Where the row lies in a store that is not spilled; those behind it up to the chunk's end follow.
  std::int32_t* at(std::size_t row) { return held(row / chunk_rows_) + row % chunk_rows_ * columns_; }
  /// Gives the memory of a chunk back, if it takes any: its rows are not read again.
  void forget(std::size_t chunk) {
    if (!spilled()) std::vector<std::int32_t>().swap(memory_[chunk]);
  }

  /// The rows of a chunk, row-major: in place, or read into `buffer`. Several threads may read at once.
  Result<const std::int32_t*> read(std::size_t chunk, std::vector<std::int32_t>& buffer) const;
  /// Replaces the rows of a chunk. Several threads may write different chunks at once.
  Status write(std::size_t chunk, const std::int32_t* rows);

 private:
  struct File;
  std::size_t chunk_bytes() const { return chunk_rows_ * columns_ * sizeof(std::int32_t); }
  std::int32_t* held(std::size_t chunk);
  Status flush_open_chunk();
  Status open_file();

  std::size_t columns_;
  std::size_t chunk_rows_;
  Options options_;
  std::size_t rows_ = 0;
  std::vector<std::vector<std::int32_t>> memory_;  // full chunks before the spill, and the last one always
  std::shared_ptr<File> file_;
};

}  // namespace eigenveil
