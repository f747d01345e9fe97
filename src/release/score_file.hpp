// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/data/npy_file.hpp"

namespace eigenveil {

/// Scores on their way to a .csv or .npy file that appears when it is complete.
class ScoreFile {
 public:
  /// Refuses every other extension.
  static Result<ScoreFile> create(const std::string& path, const std::vector<std::string>& names);

  Status append(const RowMajorMatrix& scores);
  Status commit();
  std::size_t rows() const { return rows_; }

 private:
  explicit ScoreFile(std::variant<AtomicFile, NpyFile> file) : file_(std::move(file)) {}

  std::variant<AtomicFile, NpyFile> file_;  // CSV is text in any file
  std::size_t rows_ = 0;
};

}  // namespace eigenveil
