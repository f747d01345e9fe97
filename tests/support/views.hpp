// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/fit.hpp"

namespace eigenveil::test {

/// Two views with one canonical pair (u, w) of a given correlation; everything else is independent and of variance 1.
struct TwoViews {
  RowMajorMatrix rows;  ///< n x (d1 + d2)
  Vector u;
  Vector w;
};

TwoViews correlated_views(std::mt19937_64& random, Eigen::Index n, Eigen::Index d1, Eigen::Index d2,
                          double correlation);

/// What the oracle sums: rows truncated to the lattice, in the features' units.
Matrix on_the_lattice(const RowMajorMatrix& rows, double radius);

/// Rows whose last column is their class, bounded without it.
BoundedRows bound_classed(const RowMajorMatrix& rows, const std::vector<int>& classes, double radius, int threads = 2);

/// 1 - |cos| of two vectors.
inline double misalignment(const Vector& a, const Vector& b) {
  return 1 - std::fabs(a.dot(b)) / std::max(a.norm() * b.norm(), 1e-300);
}

inline Vector stacked(const Vector& a, const Vector& b) {
  Vector both(a.size() + b.size());
  both << a, b;
  return both;
}

}  // namespace eigenveil::test
