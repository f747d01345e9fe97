// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "eigenveil/linalg/decompositions.hpp"
#include "statistics.hpp"

namespace eigenveil::noisy_gram {
namespace {

// Above this many equations the profile takes minutes; below this share of noise it changes nothing.
constexpr Eigen::Index kMostProfiled = 64;
constexpr double kClearShare = 0.25;

/// The statistic u' Omega^-1 u at a point, and what the next step needs.
struct Point {
  Vector g;
  double Q;
  Vector v;  // Omega^-1 u
  Ldlt omega;
};

Point point_at(const Equations& equations, Vector g) {
  const Vector u = equations.at(g);
  Ldlt omega(equations.noise(g) + equations.sampling(g));
  Vector v = omega.solve(u);
  const double Q = u.dot(v);
  return {std::move(g), Q, std::move(v), std::move(omega)};
}

/// The directions in which g may move: a' g and g_y stay as they are.
Matrix free_directions(const Vector& a, Eigen::Index pivot) {
  const Eigen::Index p = a.size();
  Matrix N = Matrix::Zero(p + 1, p - 1);
  for (Eigen::Index i = 0, column = 0; i < p; ++i) {
    if (i == pivot) continue;
    N(i, column) = 1;
    N(pivot, column++) = -a[i] / a[pivot];
  }
  return N;
}

/// min u' Omega^-1 u from g along N. K - C = 0 on the free coordinates is the exact condition; K alone would hold Omega
/// fixed, which biases as errors in variables do.
double minimum(const Equations& equations, Vector g, const Matrix& N) {
  constexpr int kRounds = 15;
  Point now = point_at(equations, std::move(g));
  const auto Mr = equations.moments().M.topRows(equations.size());
  for (int round = 0; round < kRounds && N.cols() > 0; ++round) {
    Matrix H = Mr.transpose() * now.omega.solve(Matrix(Mr));
    if (round > 0) H -= equations.curvature(now.v);
    const Vector step = -N * Lu(N.transpose() * H * N).solve(Vector(N.transpose() * (H * now.g)));
    const double before = now.Q;
    for (const double length : {1.0, 0.3, 0.1, 0.02}) {
      Point next = point_at(equations, now.g + length * step);
      if (!(next.Q < before)) continue;
      now = std::move(next);
      break;
    }
    if (round > 0 && before - now.Q <= 1e-4 * before + 1e-6) break;
  }
  return now.Q;
}

/// A coefficient a' theta and the profile of the statistic along it.
class Profiled {
 public:
  Profiled(const Equations& equations, const Vector& a) : equations_(equations), a_(a) {
    a.cwiseAbs().maxCoeff(&pivot_);
    N_ = free_directions(a, pivot_);
    const Vector& g = equations.solution();
    const Vector Ha = equations.inverse().transpose() * a;
    value_ = -a.dot(g.head(a.size()));
    deviation_ = std::sqrt(Ha.dot((equations.noise(g) + equations.sampling(g)) * Ha));
  }

  Interval wald() const { return {value_ - kNormal95 * deviation_, value_ + kNormal95 * deviation_}; }

  std::optional<Interval> interval() const {
    const auto below = reach(-1);
    const auto above = reach(1);
    if (!below || !above) return std::nullopt;
    return Interval{value_ - *below, value_ + *above};
  }

 private:
  // sqrt Q at value + t, less its critical value: nearly linear in t
  double excess(double t) const {
    Vector g = equations_.solution();
    g[pivot_] -= t / a_[pivot_];
    return std::sqrt(std::max(0.0, minimum(equations_, std::move(g), N_))) - kNormal95;
  }

  // How far the interval reaches to one side: a bracket, then regula falsi (Illinois).
  std::optional<double> reach(int sign) const {
    constexpr double kMost = 4096;
    double low = 0;
    double at_low = -kNormal95;
    double high = kNormal95 * deviation_;
    double at_high = excess(sign * high);
    while (at_high < 0) {
      if (high > kMost * deviation_) return std::nullopt;
      low = high;
      at_low = at_high;
      high *= 2;
      at_high = excess(sign * high);
    }
    std::optional<bool> last;
    for (int i = 0; i < 40; ++i) {
      const double t = low + (high - low) * at_low / (at_low - at_high);
      const double at_t = excess(sign * t);
      const bool inside = at_t < 0;
      (inside ? low : high) = t;
      (inside ? at_low : at_high) = at_t;
      if (std::abs(at_t) <= 1e-4) return t;
      if (last == inside) (inside ? at_high : at_low) /= 2;
      last = inside;
    }
    return high;
  }

  const Equations& equations_;
  Vector a_;
  Eigen::Index pivot_ = 0;
  Matrix N_;
  double value_;
  double deviation_;
};

}  // namespace

Equations::Equations(const NoisyMoments& moments) : moments_(moments), p_(moments.M.rows() - 1) {
  const SymmetricEigen whole = symmetric_eigen(moments.M);
  P_ = whole.vectors * whole.values.cwiseMax(0.0).asDiagonal() * whole.vectors.transpose();
  const Matrix R = moments.M.topLeftCorner(p_, p_);
  // M_rr may be indefinite: no Cholesky.
  const Lu lu(R);
  inverse_ = lu.inverse();
  solution_.resize(p_ + 1);
  solution_ << -lu.solve(Matrix(moments.M.topRightCorner(p_, 1))), 1;
  least_ = symmetric_eigenvalues(R)[0];
}

double Equations::noise_edge() const { return 2 * moments_.deviation * std::sqrt(static_cast<double>(p_)); }

Matrix Equations::noise(const Vector& g) const {
  // sigma^2 (|g|^2 I + g g')_rr: Cov(N g) for a symmetric N with entries of deviation sigma, sqrt 2 sigma on the
  // diagonal
  const double variance = moments_.deviation * moments_.deviation;
  const auto r = g.head(p_);
  Matrix omega = variance * r * r.transpose();
  omega.diagonal().array() += variance * g.squaredNorm();
  if (moments_.exact) omega(0, 0) -= 2 * variance * g[0] * g[0];
  return omega;
}

Matrix Equations::sampling(const Vector& g) const {
  // (g' P g / n) P_rr: errors independent of x, with the variance g' P g / n
  return (g.dot(P_ * g) / moments_.rows) * P_.topLeftCorner(p_, p_);
}

Matrix Equations::curvature(const Vector& v) const {
  const double variance = moments_.deviation * moments_.deviation;
  Matrix C = (v.dot(P_.topLeftCorner(p_, p_) * v) / moments_.rows) * P_;
  C.topLeftCorner(p_, p_) += variance * v * v.transpose();
  C.diagonal().array() += variance * v.squaredNorm();
  if (moments_.exact) C(0, 0) -= 2 * variance * v[0] * v[0];
  return C;
}

double at_infinity(const Equations& equations) {
  const Eigen::Index p = equations.size();
  // The eigenvector nearest to being in the kernel, and every column alone.
  const SymmetricEigen R = symmetric_eigen(equations.moments().M.topLeftCorner(p, p));
  Eigen::Index nearest = 0;
  R.values.cwiseAbs().minCoeff(&nearest);
  Eigen::Index pivot = 0;
  R.vectors.col(nearest).cwiseAbs().maxCoeff(&pivot);
  Vector g = Vector::Zero(p + 1);
  g.head(p) = R.vectors.col(nearest) / -R.vectors(pivot, nearest);
  double least = minimum(equations, g, free_directions(Vector::Unit(p, pivot), pivot));
  for (Eigen::Index j = 0; j < p && p <= kMostProfiled && least > kChi95; ++j)
    least = std::min(least, minimum(equations, -Vector::Unit(p + 1, j), free_directions(Vector::Unit(p, j), j)));
  return least;
}

std::vector<std::optional<Interval>> intervals(const Equations& equations, const Matrix& functionals) {
  const bool clear = equations.noise_edge() < kClearShare * equations.least_variation();
  std::vector<std::optional<Interval>> found(functionals.cols());
  if (!clear && !(at_infinity(equations) > kChi95)) return found;
  const bool wald = clear || equations.size() > kMostProfiled;
  for (Eigen::Index j = 0; j < functionals.cols(); ++j) {
    const Profiled one(equations, functionals.col(j));
    found[j] = wald ? std::optional(one.wald()) : one.interval();
  }
  return found;
}

}  // namespace eigenveil::noisy_gram
