// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/eigen.hpp"

#include <Spectra/SymEigsSolver.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace eigenveil {
namespace {

// Nothing where it breaks down: on a matrix of low rank or a multiple of the identity Spectra throws, or calls numbers
// far from any eigenvalue a success.
std::optional<EigenPairs> lanczos(const Matrix& S, Eigen::Index k) try {
  Spectra::DenseSymMatProd<double> product(S);
  const Eigen::Index basis = std::min(S.rows(), std::max<Eigen::Index>(4 * k, 40));
  Spectra::SymEigsSolver<Spectra::DenseSymMatProd<double>> solver(product, k, basis);
  solver.init();
  solver.compute(Spectra::SortRule::LargestAlge, 500, 1e-12);
  if (solver.info() != Spectra::CompInfo::Successful) return std::nullopt;
  EigenPairs pairs{solver.eigenvalues(), solver.eigenvectors()};
  const double residual = (S * pairs.vectors - pairs.vectors * pairs.values.asDiagonal()).norm();
  const double skew = (pairs.vectors.transpose() * pairs.vectors - Matrix::Identity(k, k)).norm();
  if (!(residual <= 1e-10 * S.norm()) || !(skew <= 1e-10)) return std::nullopt;
  return pairs;
} catch (const std::runtime_error&) {
  return std::nullopt;
}

Result<EigenPairs> dense(Matrix S, Eigen::Index k) {
  const auto d = static_cast<lapack_int>(S.rows());
  const auto count = static_cast<lapack_int>(k);
  Vector values(S.rows());
  Matrix vectors(S.rows(), k);
  std::vector<lapack_int> support(2 * k);
  lapack_int found = 0;
  const lapack_int info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'L', d, S.data(), d, 0, 0, d - count + 1, d, 0,
                                         &found, values.data(), vectors.data(), d, support.data());
  if (info != 0 || found != count) return internal_error(fmt::format("LAPACK's dsyevr failed with code {}", info));
  return EigenPairs{values.head(k).reverse(), vectors.rowwise().reverse()};
}

}  // namespace

Result<EigenPairs> top_eigenpairs(const Matrix& S, std::size_t k) {
  const Eigen::Index count = k;
  if (count < 1 || count > S.rows())
    return internal_error(fmt::format("{} eigenpairs of a {} x {} matrix", k, S.rows(), S.cols()));
  if (S.rows() >= 400 && 20 * count <= S.rows())
    if (auto pairs = lanczos(S, count)) return *std::move(pairs);
  return dense(S, count);
}

Result<Vector> eigenvalues(Matrix S) {
  const auto d = static_cast<lapack_int>(S.rows());
  Vector values(S.rows());
  const lapack_int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'L', d, S.data(), d, values.data());
  if (info != 0) return internal_error(fmt::format("LAPACK's dsyevd failed with code {}", info));
  return Vector(values.reverse());
}

void fix_signs(Matrix& vectors) {
  for (Eigen::Index j = 0; j < vectors.cols(); ++j) {
    Eigen::Index largest = 0;
    vectors.col(j).cwiseAbs().maxCoeff(&largest);
    if (vectors(largest, j) < 0) vectors.col(j) = -vectors.col(j);
  }
}

}  // namespace eigenveil
