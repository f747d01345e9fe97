// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// One named array of a file that numpy.load opens, stored as float64. A vector is one column here and has shape
/// (n,) in the file.
struct NamedArray {
  std::string name;
  Matrix values;
  bool is_vector = false;
};

}  // namespace eigenveil
