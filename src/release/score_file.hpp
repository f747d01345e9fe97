#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "atomic_file.hpp"
#include "eigenveil/base/types.hpp"

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
  ScoreFile(AtomicFile file, bool npy, std::size_t components)
      : file_(std::move(file)), npy_(npy), components_(components) {}

  AtomicFile file_;
  bool npy_;
  std::size_t components_;
  std::size_t rows_ = 0;
};

}  // namespace eigenveil
