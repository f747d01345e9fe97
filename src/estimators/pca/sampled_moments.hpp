// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {

/// A neighbour of the last component that nobody saw, as far below it as it is below the one before.
inline double unseen_neighbour(const Vector& excess) {
  const Eigen::Index last = excess.size() - 1;
  if (!(excess[last] > 0)) return 0;
  return excess[last] * (last == 0 ? 0.5 : std::min(0.9, excess[last] / excess[last - 1]));
}

/// What n made-up rows have of variance l_i along the columns of T and b along all others, about a mean whose error has
/// entries of deviation tau. `stretch`: a dimension stands for stretch^2 of them, so deviations are that much larger.
class SampledMoments {
 public:
  SampledMoments(Matrix T, const Vector& l, double b, double n, double tau, PublicStream& stream, double stretch = 1)
      : T_(std::move(T)), b_(b) {
    const Eigen::Index d = T_.rows(), K = T_.cols();
    // Sampling: between components M, between them and all others F
    M_ = Matrix::Zero(K, K);
    add_noise(M_, 1 / std::sqrt(n), stream);
    M_ = l.cwiseSqrt().asDiagonal() * M_ * l.cwiseSqrt().asDiagonal();
    M_.diagonal().array() += l.array() - b;
    F_ = stretch * (l * (b / n)).cwiseSqrt().asDiagonal() * stream.normals(K, d);
    others_ = others(d, b, n / (stretch * stretch), stream);
    r_ = stretch * tau * stream.normals(d, 1);
  }

  Matrix times(const Matrix& Q) const {
    const Matrix TQ = T_.transpose() * Q;
    return b_ * Q + T_ * (M_ * TQ + F_ * Q) + F_.transpose() * TQ + r_ * (r_.transpose() * Q) + others_(Q);
  }

 private:
  /// Sampling among all other directions, the same in every round: b (Wishart(I, n) / n - I). Of many columns its
  /// eigenvalues alone (Wigner's semicircle), along axes.
  static std::function<Matrix(const Matrix&)> others(Eigen::Index d, double b, double n, PublicStream& stream) {
    constexpr Eigen::Index kWhole = 256;
    if (d <= kWhole)
      return [Z = wishart_root(d, std::max(1.0, n), stream), b](const Matrix& Q) -> Matrix {
        return b * (Z * (Z.transpose() * Q) - Q);
      };
    const double deviation = b / std::sqrt(n);
    // A coordinate of a point drawn evenly from a disc has that law, and so has one of the sphere in four dimensions.
    const Matrix sphere = stream.normals(4, d).colwise().normalized();
    const Vector values = 2 * deviation * std::sqrt(static_cast<double>(d)) * sphere.row(0).transpose();
    return [values](const Matrix& Q) -> Matrix { return values.asDiagonal() * Q; };
  }

  Matrix T_;
  double b_;
  Matrix M_, F_;
  std::function<Matrix(const Matrix&)> others_;
  Vector r_;
};

}  // namespace eigenveil
