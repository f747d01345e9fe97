// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"
#include "eigenveil/rows/kernels.hpp"

namespace eigenveil {

/// Public directions X (d x k, nearly orthonormal columns), quantised to steps of 2^-20 so that projections of lattice
/// rows are exact integers.
class Directions {
 public:
  static constexpr int kBits = 20;

  /// Truncates X toward zero. Refuses what is not finite, empty, or far from orthonormal (spectral norm above 2).
  static Result<Directions> quantise(const Matrix& X);

  std::size_t rows() const { return scaled_.rows(); }
  std::size_t columns() const { return scaled_.cols(); }

  /// A proved upper bound on max(1, ||X||_2): by Gershgorin on the exact integer matrix X^T X, rounded up.
  double norm_factor() const { return norm_factor_; }

  /// The integers trunc(X 2^20).
  const Matrix& scaled() const { return scaled_; }

  /// t = trunc(u^T X) for every row of a block: rows x k, row-major, exact.
  void project(const RowBlock& block, double* t) const;

 private:
  explicit Directions(Matrix scaled, double norm_factor) : scaled_(std::move(scaled)), norm_factor_(norm_factor) {}
  Matrix scaled_;  // integer-valued: trunc(X * 2^20)
  double norm_factor_;
};

}  // namespace eigenveil
