// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/gep/gep.hpp"

namespace eigenveil {

/// Two released matrices (averages) and what is known of their noise.
struct NoisyMatrices {
  Matrix A;
  Matrix B;
  double sigma_a;  ///< deviation of an entry of A; 0: no noise
  double sigma_b;
  double edge_a;                                ///< the largest eigenvalue that the noise in A typically has
  bool semidefinite = false;                    ///< A has no negative eigenvalues
  std::optional<Eigen::Index> first_view = {};  ///< cca: how many columns belong to x
};

/// Solves what was released: post-processing.
/// B is shrunk first, by the share of its entries that noise accounts for (James and Stein). The ridge `auto` then
/// lifts its smallest eigenvalue to what noise typically moves it by and no further. A B well above its noise stays as
/// it is. With a sparsity: the truncated flow from `options.start`, then an exact solve over the columns it kept.
Result<GepResult> solve_matrices(const NoisyMatrices& matrices, const GepOptions& options);

/// The start of the truncated flow that a convex relaxation gives: its K leading vectors. At most 300 columns.
Result<Matrix> admm_start(const Matrix& A, const Matrix& B, double sigma_a, std::size_t components);

}  // namespace eigenveil
