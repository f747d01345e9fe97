#pragma once

#include "eigenveil/estimators/gep/gep.hpp"

namespace eigenveil {

/// A pair of released matrices (averages) and what is known of their noise.
struct NoisyPair {
  Matrix A;
  Matrix B;
  double sigma_a;  ///< deviation of an entry of A; 0: no noise
  double sigma_b;
  double edge_a;                                ///< the largest eigenvalue that the noise in A typically has
  bool semidefinite = false;                    ///< A has no negative eigenvalues
  std::optional<Eigen::Index> first_view = {};  ///< cca: how many columns belong to x
};

/// Solves what was released: post-processing.
/// The ridge `auto` lifts the smallest eigenvalue of B to what noise typically moves it by, 2 sigma_b sqrt(d), and no
/// further: a B well above its noise stays as it is.
/// With a sparsity: the truncated flow from `options.start`, then an exact solve over the columns it kept.
Result<GepResult> solve_pair(const NoisyPair& pair, const GepOptions& options);

/// The start of the truncated flow that a convex relaxation gives: its K leading vectors. At most 300 columns.
Result<Matrix> admm_start(const Matrix& A, const Matrix& B, double sigma_a, std::size_t components);

}  // namespace eigenveil
