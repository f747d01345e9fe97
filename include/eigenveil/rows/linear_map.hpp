// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// A public matrix M (d x k) whose products with lattice rows are exact, whatever their order: linear_map.proof.md.
/// Entries are whole numbers of steps, a power of two, with the longest column below 2^32 steps.
class LinearMap {
 public:
  /// Truncates M toward zero. Refuses what is empty, not finite, or has columns longer than 2^200.
  static Result<LinearMap> quantise(const Matrix& M);

  std::size_t rows() const { return scaled_.rows(); }
  std::size_t columns() const { return scaled_.cols(); }
  double step() const { return step_; }

  /// M as it is used.
  Matrix matrix() const { return scaled_ * step_; }

  /// t = u^T M / step for `count` rows of integer-valued doubles, ||u|| <= 2^20, row-major: count x k, exact.
  void product(const double* u, std::size_t count, double* t) const;

 private:
  LinearMap(Matrix scaled, double step) : scaled_(std::move(scaled)), step_(step) {}
  Matrix scaled_;  // integer-valued
  double step_;
};

}  // namespace eigenveil
