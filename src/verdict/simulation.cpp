// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

constexpr double kHolds = 0.9;        // expected cos^2
constexpr double kWorst = 0.8;        // the same in a bad draw, its 10% quantile
constexpr Eigen::Index kLargest = 6;  // directions of a space that is judged as one

bool determined(std::vector<double> cos2) {
  double mean = 0;
  for (const double one : cos2) mean += one / static_cast<double>(cos2.size());
  const auto tenth = cos2.begin() + static_cast<std::ptrdiff_t>(cos2.size() / 10);
  std::nth_element(cos2.begin(), tenth, cos2.end());
  return mean >= kHolds && *tenth >= kWorst;
}

}  // namespace

double PublicStream::chi(double degrees) {
  return std::sqrt(2 * std::gamma_distribution<double>(degrees / 2, 1.0)(random_));
}

Matrix PublicStream::normals(Eigen::Index rows, Eigen::Index columns) {
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(); });
}

Matrix wishart_root(Eigen::Index d, double n, PublicStream& stream) {
  if (n < static_cast<double>(d)) {
    const auto rows = std::max<Eigen::Index>(1, static_cast<Eigen::Index>(n));
    return stream.normals(d, rows) / std::sqrt(n);
  }
  Matrix L = Matrix::Zero(d, d);
  for (Eigen::Index j = 0; j < d; ++j) {
    L(j, j) = stream.chi(n - static_cast<double>(j));
    for (Eigen::Index i = j + 1; i < d; ++i) L(i, j) = stream.normal();
  }
  return L / std::sqrt(n);
}

void add_noise(Matrix& S, double deviation, PublicStream& stream) {
  if (!(deviation > 0)) return;
  for (Eigen::Index j = 0; j < S.cols(); ++j) {
    S(j, j) += std::sqrt(2.0) * deviation * stream.normal();
    for (Eigen::Index i = j + 1; i < S.rows(); ++i) S(i, j) = S(j, i) += deviation * stream.normal();
  }
}

void DrawnDirections::add(const Matrix& V) {
  const Matrix squared = V.leftCols(q_).cwiseAbs2();
  square_ += squared;
  cos_ += V.topLeftCorner(q_, q_).diagonal().cwiseAbs();
  blocks_.push_back(squared.topRows(q_));
}

Vector DrawnDirections::cos2() const {
  return square_.topRows(q_).diagonal() / static_cast<double>(std::max<std::size_t>(1, blocks_.size()));
}

std::vector<double> DrawnDirections::group(Eigen::Index first, Eigen::Index last) const {
  const Eigen::Index size = last - first + 1;
  std::vector<double> cos2;
  // The worst of them: one that points elsewhere is not made good by neighbours that hold by themselves.
  for (const Matrix& block : blocks_) cos2.push_back(block.block(first, first, size, size).colwise().sum().minCoeff());
  return cos2;
}

bool ends_apart(const std::vector<bool>& apart, Eigen::Index first, Eigen::Index last) {
  const auto is = [&](Eigen::Index i) {
    return i < 0 || i >= static_cast<Eigen::Index>(apart.size()) || apart[static_cast<std::size_t>(i)];
  };
  return is(first - 1) && is(last);
}

std::vector<Judged> DrawnDirections::judge(const std::vector<bool>& apart) const {
  std::vector<Judged> judged(q_);
  for (Eigen::Index i = 0; i < q_; ++i) {
    Judged& one = judged[i];
    one.standing = Standing::kWeak;
    // The smallest run of neighbours that is determined; among equals the one that begins first.
    for (Eigen::Index size = 1; size <= std::min(kLargest, q_) && one.last == 0; ++size)
      for (Eigen::Index first = std::max<Eigen::Index>(0, i - size + 1); first <= std::min(i, q_ - size); ++first) {
        if (!ends_apart(apart, first, first + size - 1) || !determined(group(first, first + size - 1))) continue;
        one = {size == 1 ? Standing::kHolds : Standing::kPlane, static_cast<std::size_t>(first + 1),
               static_cast<std::size_t>(first + size)};
        break;
      }
  }
  return judged;
}

Matrix DrawnDirections::spread() const {
  const auto draws = static_cast<double>(std::max<std::size_t>(1, blocks_.size()));
  Matrix spread = square_ / draws;
  for (Eigen::Index i = 0; i < q_; ++i) spread(i, i) = std::max(0.0, spread(i, i) - std::pow(cos_[i] / draws, 2));
  return spread;
}

Matrix loading_deviation(const Matrix& U, const Matrix& spread) {
  const Eigen::Index p = std::min(U.cols(), spread.rows());
  const Matrix squares = U.leftCols(p).cwiseAbs2();
  Matrix variance = squares * spread.topRows(p);
  const Eigen::Index m = spread.rows() - p;
  if (m > 0) {
    const Vector left = (1 - squares.rowwise().sum().array()).max(0.0);
    variance += left * (spread.bottomRows(m).colwise().sum() / static_cast<double>(m));
  }
  return variance.cwiseMax(0.0).cwiseSqrt();
}

}  // namespace eigenveil
