// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/decompositions.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

namespace eigenveil {
namespace {

template <class Solver>
Svd svd_by(const Matrix& A, unsigned wanted) {
  const Solver svd(A, wanted);
  return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
}

constexpr unsigned kThin = Eigen::ComputeThinU | Eigen::ComputeThinV;

}  // namespace

SymmetricEigen symmetric_eigen(const Matrix& S) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(S);
  return {eigen.eigenvalues(), eigen.eigenvectors()};
}

Vector symmetric_eigenvalues(const Matrix& S) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(S, Eigen::EigenvaluesOnly).eigenvalues();
}

double smallest_real_eigenvalue(const Matrix& A) {
  return Eigen::EigenSolver<Matrix>(A, false).eigenvalues().real().minCoeff();
}

Svd thin_svd(const Matrix& A) { return svd_by<Eigen::JacobiSVD<Matrix>>(A, kThin); }
Svd full_svd(const Matrix& A) { return svd_by<Eigen::JacobiSVD<Matrix>>(A, Eigen::ComputeFullU | Eigen::ComputeFullV); }
Svd thin_svd_large(const Matrix& A) { return svd_by<Eigen::BDCSVD<Matrix>>(A, kThin); }

Matrix upper_factor(const Matrix& A, Eigen::Index rows) {
  return Eigen::HouseholderQR<Matrix>(A).matrixQR().topRows(rows).triangularView<Eigen::Upper>();
}

Matrix least_squares(const Matrix& A, const Matrix& B) { return Eigen::ColPivHouseholderQR<Matrix>(A).solve(B); }
Matrix shortest_least_squares(const Matrix& A, const Matrix& B) { return A.completeOrthogonalDecomposition().solve(B); }
Matrix pseudo_inverse(const Matrix& A) { return A.completeOrthogonalDecomposition().pseudoInverse(); }

Ldlt::Ldlt(const Matrix& S) : ldlt_(S) {}
Matrix Ldlt::solve(const Matrix& B) const { return ldlt_.solve(B); }
Vector Ldlt::solve(const Vector& b) const { return ldlt_.solve(b); }
Vector Ldlt::diagonal() const { return ldlt_.vectorD(); }

Lu::Lu(const Matrix& A) : lu_(A) {}
Matrix Lu::solve(const Matrix& B) const { return lu_.solve(B); }
Vector Lu::solve(const Vector& b) const { return lu_.solve(b); }
Matrix Lu::inverse() const { return lu_.inverse(); }

}  // namespace eigenveil
