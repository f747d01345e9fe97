// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/directions.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

Result<Directions> Directions::quantise(const Matrix& X) {
  if (X.rows() == 0 || X.cols() == 0) return internal_error("directions must have at least one row and column");
  // Entries of at most 2 keep every product below exact in doubles, before anything else is known of X.
  if (!(X.cwiseAbs().maxCoeff() <= 2.0)) return internal_error("directions must be finite and of unit length");

  Matrix scaled = (X * std::ldexp(1.0, kBits)).unaryExpr([](double x) { return std::trunc(x); });
  const double column_square = scaled.colwise().squaredNorm().maxCoeff();
  if (!(column_square <= 4 * 0x1p40)) return internal_error("directions must be of unit length");

  // Integers below 2^53, so exact: ||X||_2^2 <= max_i sum_j |(X^T X)_ij|
  const Matrix gram = scaled.transpose() * scaled;
  const double square = std::ldexp(gram.cwiseAbs().rowwise().sum().maxCoeff(), -2 * kBits);
  if (!(square <= 4))
    return internal_error(fmt::format("directions must be orthonormal, but ||X||^2 may be {}", square));
  const double norm_factor = std::max(1.0, std::sqrt(square) * (1.0 + 0x1p-50));
  return Directions(std::move(scaled), norm_factor);
}

void Directions::project(const RowBlock& block, double* t) const {
  const auto m = static_cast<int>(block.rows);
  const auto d = static_cast<int>(block.columns);
  const auto k = static_cast<int>(scaled_.cols());
  // T^T = X^T U^T: |partial sums| <= ||u|| ||x|| 2^20 <= 2^41, exact
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, k, m, d, 1.0, scaled_.data(), d, block.values, d, 0.0, t, k);
  const double step = std::ldexp(1.0, -kBits);
  for (std::size_t i = 0; i < block.rows * columns(); ++i) t[i] = std::trunc(t[i] * step);
}

}  // namespace eigenveil
