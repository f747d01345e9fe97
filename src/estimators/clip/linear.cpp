// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/linalg/decompositions.hpp"

namespace eigenveil {

Result<LinearHeads> solve_linear(const Matrix& S, std::size_t r, double alpha) {
  const Eigen::Index rank = r;
  if (rank < 1 || rank > std::min(S.rows(), S.cols()))
    return usage_error(fmt::format("`dim` must be from 1 to {} here, but is {}", std::min(S.rows(), S.cols()), r));
  const Svd svd = thin_svd_large(S);
  // (1 + lambda / alpha)^(1/2) / sqrt(2)
  const Vector stretch = ((1 + svd.values.head(rank).array() / alpha) / 2).sqrt();
  return LinearHeads{stretch.asDiagonal() * svd.U.leftCols(rank).transpose(),
                     stretch.asDiagonal() * svd.V.leftCols(rank).transpose()};
}

LinearHeads linear_gradient(const LinearHeads& G, const Matrix& S, double alpha) {
  const Matrix excess = G.G1 * G.G1.transpose() + G.G2 * G.G2.transpose() - Matrix::Identity(G.G1.rows(), G.G1.rows());
  return {-G.G2 * S.transpose() + alpha * excess * G.G1, -G.G1 * S + alpha * excess * G.G2};
}

}  // namespace eigenveil
