// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/generalized.hpp"

#include <fmt/format.h>
#include <lapacke.h>

namespace eigenveil {

Result<EigenPairs> top_generalized_eigenpairs(const Matrix& A, const Matrix& B, std::size_t k) {
  const auto d = static_cast<lapack_int>(A.rows());
  if (A.rows() != A.cols() || B.rows() != A.rows() || B.cols() != A.rows())
    return internal_error("the matrices of a generalized eigenproblem must be square and of one size");
  // B = L L^T
  Matrix L = B;
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', d, L.data(), d) != 0)
    return internal_error("the matrix B of a generalized eigenproblem is not positive definite");
  // C = L^-1 A L^-T
  Matrix C = A;
  const lapack_int reduced = LAPACKE_dsygst(LAPACK_COL_MAJOR, 1, 'L', d, C.data(), d, L.data(), d);
  if (reduced != 0) return internal_error(fmt::format("LAPACK's dsygst failed with code {}", reduced));
  C.triangularView<Eigen::StrictlyUpper>() = C.transpose();
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(C, k));
  // V = L^-T W
  const auto count = static_cast<lapack_int>(k);
  const lapack_int solved =
      LAPACKE_dtrtrs(LAPACK_COL_MAJOR, 'L', 'T', 'N', d, count, L.data(), d, pairs.vectors.data(), d);
  if (solved != 0) return internal_error(fmt::format("LAPACK's dtrtrs failed with code {}", solved));
  return pairs;
}

Result<Extremes> extreme_eigenvalues(const Matrix& S) {
  const auto largest = EIGENVEIL_TRY(top_eigenpairs(S, 1));
  const auto smallest = EIGENVEIL_TRY(top_eigenpairs(-S, 1));
  return Extremes{-smallest.values[0], largest.values[0]};
}

}  // namespace eigenveil
