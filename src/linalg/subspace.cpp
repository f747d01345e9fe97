// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/subspace.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <numeric>
#include <vector>

namespace eigenveil {

Matrix orthonormal(const Matrix& A) {
  return Eigen::HouseholderQR<Matrix>(A).householderQ() * Matrix::Identity(A.rows(), A.cols());
}

Matrix truncate_rows(const Matrix& Q, std::size_t s) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(Q.rows()));
  std::iota(order.begin(), order.end(), 0);
  const Vector norms = Q.rowwise().squaredNorm();
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(s) - 1, order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return norms[a] > norms[b]; });
  const auto kept = static_cast<Eigen::Index>(s);
  Matrix block(kept, Q.cols());
  for (Eigen::Index i = 0; i < kept; ++i) block.row(i) = Q.row(order[static_cast<std::size_t>(i)]);
  block = orthonormal(block);
  Matrix result = Matrix::Zero(Q.rows(), Q.cols());
  for (Eigen::Index i = 0; i < kept; ++i) result.row(order[static_cast<std::size_t>(i)]) = block.row(i);
  return result;
}

}  // namespace eigenveil
