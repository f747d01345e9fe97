// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "eigenveil/base/types.hpp"
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
  RememberedProducts(Matrix start, std::vector<std::size_t> widths, std::size_t components)
      : widths_(std::move(widths)), U_(std::move(start)), W_(Vector::Ones(U_.cols())) {
    widths_.push_back(components);
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
    const double least = first ? S.diagonal().mean() : Eigen::SelfAdjointEigenSolver<Matrix>(S).eigenvalues()[0];
    if (first) level_ = least;
    smallest_ = first ? least : std::min(smallest_, least);
    // A shift makes the eigenvalues below the wanted ones small: .9 leaves room for the noise of the smallest.
    const double shift = 0.9 * std::max(smallest_, 0.0);
    append(A_, A);
    append(Y_, Y);
    D_.conservativeResize(D_.size() + p);
    D_.tail(p).setConstant(sigma * sigma);

    const auto width = std::min<Eigen::Index>(static_cast<Eigen::Index>(widths_[++round_]), p);
    double top = 0;
    const Matrix begin = left_vectors(product - shift * U_, width, top);
    ritz(begin, shift, std::pow(0.3 * top, 2) / static_cast<double>(d));
  }

  /// Orthonormal, by descending Ritz value.
  const Matrix& vectors() const { return U_; }
  const Vector& values() const { return values_; }
  /// The mean eigenvalue, as the public start saw it.
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

  // The first left singular vectors of B, and its largest singular value, from B^T B
  static Matrix left_vectors(const Matrix& B, Eigen::Index width, double& top) {
    const Eigen::SelfAdjointEigenSolver<Matrix> right(B.transpose() * B);
    top = std::sqrt(std::max(right.eigenvalues()[B.cols() - 1], 0.0));
    return orthonormal(B * right.eigenvectors().rightCols(width).rowwise().reverse());
  }

  // G - s I is estimated by Z H A^T, Z = Y - s A, H = (A^T A + diag(sigma^2) / tau^2)^-1: the ridge regression for
  // entries of G - s I of prior deviation tau.
  void ritz(const Matrix& begin, double shift, double tau2) {
    const Matrix gram = A_.transpose() * A_;
    // Rounds filter rows differently, so their products do not agree exactly even without noise.
    const double least = 1e-4 * gram.diagonal().maxCoeff();
    const Vector ridge = (D_ / std::max(tau2, 1e-300)).array().max(least).min(1e12 * gram.diagonal().maxCoeff());
    const Eigen::LDLT<Matrix> H(gram + Matrix(ridge.asDiagonal()));
    const auto times = [&](const Matrix& V) -> Matrix {
      const Matrix x = H.solve(A_.transpose() * V);
      return Y_ * x - shift * (A_ * x);
    };
    Matrix V = begin;
    for (int pass = 0; pass < 3; ++pass) V = orthonormal(times(V));
    const Matrix small = V.transpose() * times(V);
    const Eigen::SelfAdjointEigenSolver<Matrix> pairs((small + small.transpose()) / 2);
    U_ = V * pairs.eigenvectors().rowwise().reverse();
    values_ = pairs.eigenvalues().reverse().array() + shift;
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
  Vector D_;
  double smallest_ = 0;
  double level_ = 0;
};

/// E min(1, m / c) c^2 / p for the norm c of p Gaussian numbers, m its median: what a filter that shrinks the upper
/// half leaves of the variance.
inline double kept_by_filter(std::size_t p) {
  std::mt19937_64 random(p);
  Vector squares = public_normals(random, 2001, static_cast<Eigen::Index>(p)).rowwise().squaredNorm();
  std::sort(squares.begin(), squares.end());
  const double median = std::sqrt(squares[1000]);
  return squares.cwiseSqrt().unaryExpr([&](double c) { return std::min(1.0, median / c) * c * c; }).mean() /
         static_cast<double>(p);
}

/// The largest Ritz value that rows without a direction would give: the same rounds on products of `level` I, with the
/// fluctuations of n rows and the noise that each round had. Simulated in at most 200 dimensions, with deviations
/// scaled so that the norms of noise columns are those of d, and at most 4 components.
inline double ritz_noise_edge(std::size_t d, std::size_t k, double rows, double level, bool filtered,
                              const std::vector<double>& sigmas) {
  constexpr int kDraws = 20;
  const std::size_t few = std::min<std::size_t>(d, 200);
  const std::size_t components = std::min({k, few, std::size_t{4}});
  const auto m = static_cast<Eigen::Index>(few);
  const double stretch = std::sqrt(static_cast<double>(d) / static_cast<double>(few));
  const auto widths = block_widths(components, few, sigmas.size());
  std::vector<double> kept;
  for (const std::size_t p : widths) kept.push_back(filtered ? kept_by_filter(p) : 1.0);
  Vector top(kDraws);
  std::mt19937_64 random(19580101);
  for (int draw = 0; draw < kDraws; ++draw) {
    Matrix N = public_normals(random, m, m);
    N = (N + N.transpose()).eval() * (stretch / std::sqrt(2 * rows));
    RememberedProducts memory(orthonormal(public_normals(random, m, static_cast<Eigen::Index>(widths[0]))), widths,
                              components);
    for (std::size_t t = 0; t < sigmas.size(); ++t) {
      const Matrix A = memory.directions() * memory.scale();
      const double b = std::max(level, 0.0) * kept[t] / kept[0];
      const double sigma = sigmas[t] * stretch;
      memory.learn(A, b * (A + N * A) + sigma * public_normals(random, m, A.cols()), sigma);
    }
    top[draw] = memory.values()[0];
  }
  const double mean = top.mean();
  return mean + 2.2 * std::sqrt((top.array() - mean).square().mean());
}

}  // namespace eigenveil
