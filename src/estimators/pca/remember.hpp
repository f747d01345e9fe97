// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {

/// Columns of a round's block: a start that knows nothing is wide and narrows to k. The cells of a sweep hold d numbers
/// for each column, so a start of very many columns is less wide.
inline std::vector<std::size_t> block_widths(std::size_t k, std::size_t d, std::size_t rounds) {
  const std::vector<std::size_t> wide =
      k == 1 ? std::vector<std::size_t>{8, 8, 4, 2} : std::vector<std::size_t>{4 * k, 4 * k, 2 * k};
  std::vector<std::size_t> widths(rounds, k);
  const std::size_t most = std::min(std::max<std::size_t>(d / 2, 1), (std::size_t{1} << 18) / d);
  for (std::size_t t = 0; t < std::min(rounds, wide.size()); ++t) widths[t] = std::max(k, std::min(wide[t], most));
  return widths;
}

/// Gaussian entries that are the same everywhere: nothing private is in them.
inline Matrix public_normals(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

/// A symmetric operator G, known by noisy products Y_t = G A_t + noise of all rounds so far. The next block is made of
/// all of them: ridge regression of G on the products, then Ritz vectors. Post-processing: it sees released matrices
/// alone.
class RememberedProducts {
 public:
  /// The level of all directions, if it is known already; otherwise the start must know nothing of G, and tells it.
  RememberedProducts(Matrix start, std::vector<std::size_t> widths, std::size_t components,
                     std::optional<double> level = {})
      : widths_(std::move(widths)), U_(std::move(start)), W_(Vector::Ones(U_.cols())), known_level_(level) {
    widths_.push_back(components);
    level_ = level.value_or(0);
  }

  /// What the next product is asked for, up to `scale`: U diag(w) of spectral norm 1.
  Matrix directions() const { return U_ * (W_ / scale()).asDiagonal(); }
  double scale() const { return W_.maxCoeff(); }

  /// The product with A = U diag(w), as it was asked for, and the deviation of the noise of an entry of it.
  void learn(const Matrix& A, const Matrix& Y, double sigma) {
    const Eigen::Index d = U_.rows();
    const Eigen::Index p = U_.cols();
    const Matrix product = Y * W_.cwiseInverse().asDiagonal();  // G U
    Matrix S = U_.transpose() * product;
    S = (S + S.transpose()).eval() / 2;
    const bool first = A_.cols() == 0;
    const bool blind = first && !known_level_;
    const double least = blind ? S.diagonal().mean() : symmetric_eigen(S).values[0];
    if (blind) level_ = least;
    smallest_ = first ? least : std::min(smallest_, least);
    // A shift makes the eigenvalues below the wanted ones small: .9 leaves room for the noise of the smallest.
    const double shift = 0.9 * std::max(smallest_, 0.0);
    extend_gram(A);
    append(A_, A);
    append(Y_, Y);
    D_.conservativeResize(D_.size() + p);
    D_.tail(p).setConstant(sigma * sigma);

    const auto width = std::min<Eigen::Index>(widths_[++round_], p);
    double top = 0;
    const Matrix begin = left_vectors(product - shift * U_, width, top);
    ritz(begin, shift, std::pow(0.3 * top, 2) / static_cast<double>(d));
  }

  /// Orthonormal, by descending Ritz value.
  const Matrix& vectors() const { return U_; }
  const Vector& values() const { return values_; }
  /// The mean eigenvalue, as it was known or the public start saw it.
  double level() const { return level_; }
  std::size_t round() const { return round_; }
  const std::vector<std::size_t>& widths() const { return widths_; }

 private:
  static void append(Matrix& to, const Matrix& columns) {
    Matrix joined(columns.rows(), to.cols() + columns.cols());
    if (to.cols() > 0) joined.leftCols(to.cols()) = to;
    joined.rightCols(columns.cols()) = columns;
    to = std::move(joined);
  }

  // A^T A with the columns that come next
  void extend_gram(const Matrix& columns) {
    const Eigen::Index old = gram_.rows(), more = columns.cols();
    gram_.conservativeResize(old + more, old + more);
    if (old > 0) {
      gram_.topRightCorner(old, more) = A_.transpose() * columns;
      gram_.bottomLeftCorner(more, old) = gram_.topRightCorner(old, more).transpose();
    }
    gram_.bottomRightCorner(more, more) = columns.transpose() * columns;
  }

  // The first left singular vectors of B, and its largest singular value, from B^T B
  static Matrix left_vectors(const Matrix& B, Eigen::Index width, double& top) {
    const SymmetricEigen right = symmetric_eigen(B.transpose() * B);
    top = std::sqrt(std::max(right.values[B.cols() - 1], 0.0));
    return orthonormal(B * right.vectors.rightCols(width).rowwise().reverse());
  }

  // G - s I is estimated by Z H A^T, Z = Y - s A, H = (A^T A + diag(sigma^2) / tau^2)^-1: the ridge regression for
  // entries of G - s I of prior deviation tau.
  void ritz(const Matrix& begin, double shift, double tau2) {
    // Rounds filter rows differently, so their products do not agree exactly even without noise.
    const double least = 1e-4 * gram_.diagonal().maxCoeff();
    const Vector ridge = (D_ / std::max(tau2, 1e-300)).array().max(least).min(1e12 * gram_.diagonal().maxCoeff());
    const Ldlt H(gram_ + Matrix(ridge.asDiagonal()));
    const auto times = [&](const Matrix& V) -> Matrix {
      const Matrix x = H.solve(Matrix(A_.transpose() * V));
      return Y_ * x - shift * (A_ * x);
    };
    Matrix V = begin;
    for (int pass = 0; pass < 3; ++pass) V = orthonormal(times(V));
    const Matrix small = V.transpose() * times(V);
    const SymmetricEigen pairs = symmetric_eigen((small + small.transpose()) / 2);
    U_ = V * pairs.vectors.rowwise().reverse();
    values_ = pairs.values.reverse().array() + shift;
    whiten();
  }

  // w = lambda^-1/2: columns of equal length in a typical row, so that the filter's statistic is not all the first's
  void whiten() {
    W_ = Vector::Ones(U_.cols());
    if (widths_.back() == 1) return;
    const double floor = std::max(0.01 * values_.maxCoeff(), 1e-300);
    W_ = values_.cwiseMax(floor).cwiseSqrt().cwiseInverse();
    W_ /= std::sqrt(W_.squaredNorm() / static_cast<double>(W_.size()));
  }

  std::vector<std::size_t> widths_;
  std::size_t round_ = 0;
  Matrix U_;
  Vector W_;
  Vector values_;
  Matrix A_, Y_;
  Matrix gram_;  // A^T A
  Vector D_;
  std::optional<double> known_level_;
  double smallest_ = 0;
  double level_ = 0;
};

}  // namespace eigenveil
