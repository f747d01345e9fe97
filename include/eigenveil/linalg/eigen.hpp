// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

struct EigenPairs {
  Vector values;   ///< descending
  Matrix vectors;  ///< d x k, orthonormal columns
};

/// The k algebraically largest eigenpairs of a symmetric matrix: Lanczos (Spectra) when k << d, LAPACK dsyevr
/// otherwise.
Result<EigenPairs> top_eigenpairs(const Matrix& S, std::size_t k);

/// All eigenvalues of a symmetric matrix, descending.
Result<Vector> eigenvalues(Matrix S);

/// Flips each column so that its entry of largest magnitude is positive.
void fix_signs(Matrix& vectors);

}  // namespace eigenveil
