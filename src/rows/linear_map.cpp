// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/linear_map.hpp"

#include <cblas.h>

#include <cmath>

namespace eigenveil {

Result<LinearMap> LinearMap::quantise(const Matrix& M) {
  if (M.rows() == 0 || M.cols() == 0) return internal_error("a linear map must have at least one row and column");
  if (!M.allFinite()) return internal_error("a linear map must be finite");
  double longest = 0;
  for (Eigen::Index j = 0; j < M.cols(); ++j) longest = std::max(longest, M.col(j).stableNorm());
  if (longest > 0x1p200) return internal_error("a linear map has columns longer than 2^200");
  if (longest < 0x1p-200) return LinearMap(Matrix::Zero(M.rows(), M.cols()), 1.0);
  // longest / step in [2^30, 2^31): room for the rounding of `longest`
  const double step = std::ldexp(1.0, std::ilogb(longest) - 30);
  return LinearMap((M / step).unaryExpr([](double x) { return std::trunc(x); }), step);
}

void LinearMap::product(const double* u, std::size_t count, double* t) const {
  const auto m = static_cast<int>(count);
  const auto d = static_cast<int>(scaled_.rows());
  const auto k = static_cast<int>(scaled_.cols());
  // T^T = M^T U^T
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, k, m, d, 1.0, scaled_.data(), d, u, d, 0.0, t, k);
}

}  // namespace eigenveil
