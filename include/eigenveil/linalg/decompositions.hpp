// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

// Eigen's dense decompositions, compiled in one place: wherever one is written out it costs the compiler 2 to 17 s.

/// All eigenpairs of a symmetric matrix, of which the lower triangle is read. Values ascend.
struct SymmetricEigen {
  Vector values;
  Matrix vectors;
};
SymmetricEigen symmetric_eigen(const Matrix& S);
Vector symmetric_eigenvalues(const Matrix& S);

/// The smallest real part of the eigenvalues of any square matrix.
double smallest_real_eigenvalue(const Matrix& A);

/// A = U diag(values) V^T; values descend.
struct Svd {
  Matrix U;
  Vector values;
  Matrix V;
};
Svd thin_svd(const Matrix& A);        ///< by Jacobi rotations
Svd full_svd(const Matrix& A);        ///< likewise, with square U and V
Svd thin_svd_large(const Matrix& A);  ///< by divide and conquer

/// The first `rows` rows of R in A = Q R.
Matrix upper_factor(const Matrix& A, Eigen::Index rows);
/// The X of least ||A X - B||, by QR with pivoting.
Matrix least_squares(const Matrix& A, const Matrix& B);
/// The same where A may lack rank: the shortest.
Matrix shortest_least_squares(const Matrix& A, const Matrix& B);
Matrix pseudo_inverse(const Matrix& A);

/// L D L^T of a symmetric matrix.
class Ldlt {
 public:
  explicit Ldlt(const Matrix& S);
  Matrix solve(const Matrix& B) const;
  Vector solve(const Vector& b) const;
  Vector diagonal() const;  ///< D

 private:
  Eigen::LDLT<Matrix> ldlt_;
};

/// P L U of a square matrix.
class Lu {
 public:
  explicit Lu(const Matrix& A);
  Matrix solve(const Matrix& B) const;
  Vector solve(const Vector& b) const;
  Matrix inverse() const;

 private:
  Eigen::PartialPivLU<Matrix> lu_;
};

}  // namespace eigenveil
