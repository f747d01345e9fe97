// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {

/// The k algebraically largest solutions of A v = lambda B v, A symmetric, B symmetric positive definite:
/// V^T B V = I. Refuses a B that is not positive definite.
Result<EigenPairs> top_generalized_eigenpairs(const Matrix& A, const Matrix& B, std::size_t k);

/// The smallest and the largest eigenvalue of a symmetric matrix.
struct Extremes {
  double smallest;
  double largest;
};
Result<Extremes> extreme_eigenvalues(const Matrix& S);

}  // namespace eigenveil
