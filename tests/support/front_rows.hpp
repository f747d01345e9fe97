// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "eigenveil/base/types.hpp"

namespace eigenveil::test {

/// Rows for the calls from C++: columns 1 to 5 normal, of which the first two are related to the next two; 6 a class,
/// 0 or 1; 7 a response.
inline Matrix front_rows(Eigen::Index rows = 3000) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  Matrix all(rows, 7);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < 5; ++j) all(i, j) = (1 - 0.15 * static_cast<double>(j)) * normal(random);
    all(i, 2) += 0.7 * all(i, 0);
    all(i, 3) -= 0.5 * all(i, 1);
    all(i, 5) = all(i, 0) > 0 ? 1 : 0;
    all(i, 6) = all(i, 1) + 0.2 * normal(random);
  }
  return all;
}

}  // namespace eigenveil::test
