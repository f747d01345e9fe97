// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

// A convex start for generalized eigenproblems (Tan, Wang, Liu, Zhang 2018):
//   minimise -tr(A P) + phi ||P||_1,1   over P with 0 <= B^1/2 P B^1/2 <= I and trace at most K.

struct FantopeOptions {
  std::size_t components = 1;  ///< K
  double penalty = 0;          ///< phi: of every entry's magnitude
  double tolerance = 1e-6;     ///< of both residuals
  std::size_t most_rounds = 20000;
};

struct FantopeSolution {
  Matrix P;
  double primal_residual;  ///< ||B^1/2 P B^1/2 - H||_F, of the problem scaled to ||A|| = ||B|| = 1
  double dual_residual;    ///< how far the Lagrangian's gradient is from zero, scaled alike
  std::size_t rounds;
  bool converged;
};

/// Linearised ADMM. A and B symmetric, B positive definite.
Result<FantopeSolution> solve_fantope(const Matrix& A, const Matrix& B, const FantopeOptions& options);

/// The closest point of {h : 0 <= h_i <= 1, sum h_i <= K}: min(1, max(w_i - gamma, 0)) with the smallest such gamma >=
/// 0.
Vector project_capped_simplex(const Vector& w, double K);

}  // namespace eigenveil
