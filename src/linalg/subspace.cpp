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
  std::vector<Eigen::Index> order(Q.rows());
  std::iota(order.begin(), order.end(), 0);
  const Vector norms = Q.rowwise().squaredNorm();
  std::nth_element(order.begin(), order.begin() + s - 1, order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return norms[a] > norms[b]; });
  const Eigen::Index kept = s;
  Matrix block(kept, Q.cols());
  for (Eigen::Index i = 0; i < kept; ++i) block.row(i) = Q.row(order[i]);
  block = orthonormal(block);
  Matrix result = Matrix::Zero(Q.rows(), Q.cols());
  for (Eigen::Index i = 0; i < kept; ++i) result.row(order[i]) = block.row(i);
  return result;
}

}  // namespace eigenveil
