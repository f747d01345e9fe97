// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// A C-order float64 array of shape (rows, columns) on its way to an .npy file, which appears when it is complete.
class NpyFile {
 public:
  static Result<NpyFile> create(const std::string& path, std::size_t columns);

  Status append(const RowMajorMatrix& rows);
  Status commit();

 private:
  NpyFile(AtomicFile file, std::size_t columns) : file_(std::move(file)), columns_(columns) {}

  AtomicFile file_;
  std::size_t columns_;
  std::size_t rows_ = 0;
};

}  // namespace eigenveil
