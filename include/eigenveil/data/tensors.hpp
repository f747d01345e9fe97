// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// A named array of any number of dimensions, its rows first; numbers row-major. Either floats or integers.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> floats;           ///< from f4 and f8
  std::vector<std::int64_t> integers;  ///< from integers and booleans
  bool whole = false;                  ///< integers, not floats

  std::int64_t rows() const { return shape.front(); }
  std::size_t row_size() const;
  /// The given rows, in that order.
  Tensor take(const std::vector<std::size_t>& rows) const;
};

/// All arrays of an NPZ file. Refuses numbers that are not finite, and arrays with unequal numbers of rows: a row of
/// each together is one pair.
Result<std::vector<Tensor>> read_tensors(const std::string& path);

}  // namespace eigenveil
