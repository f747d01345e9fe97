// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/regress/regress.hpp"

namespace eigenveil::noisy_gram {

/// The 95% quantile of chi^2 with one degree of freedom, and its root.
inline constexpr double kChi95 = 3.841458820694124;
inline constexpr double kNormal95 = 1.959963984540054;

/// The equations u(g) = M_r. g, which have expectation 0 at g = (-theta, 1), theta the truth, and their covariance.
class Equations {
 public:
  explicit Equations(const NoisyMoments& moments);

  Eigen::Index size() const { return p_; }
  const NoisyMoments& moments() const { return moments_; }
  /// M_rr^-1, and the unshrunk solution g of u(g) = 0, g_y = 1.
  const Matrix& inverse() const { return inverse_; }
  const Vector& solution() const { return solution_; }
  double least_variation() const { return least_; }
  double noise_edge() const;

  Vector at(const Vector& g) const { return moments_.M.topRows(p_) * g; }
  /// Cov u(g): of the noise, of sampling.
  Matrix noise(const Vector& g) const;
  Matrix sampling(const Vector& g) const;
  /// C with v' Cov u(g) v = g' C g.
  Matrix curvature(const Vector& v) const;

 private:
  NoisyMoments moments_;
  Eigen::Index p_;
  Matrix P_;  // M with negative eigenvalues set to 0
  Matrix inverse_;
  Vector solution_;
  double least_;
};

/// Intervals of a' theta for each column of `functionals`; none where the noise leaves every value possible.
std::vector<std::optional<Interval>> intervals(const Equations& equations, const Matrix& functionals);
/// The smallest statistic of a direction along which M_rr may be singular: at most kChi95 if it may well be.
double at_infinity(const Equations& equations);

/// theta, shrunk as far as the noise asks for, or by a given ridge per row.
Vector shrunk(const NoisyMoments& moments);
Vector ridged(const NoisyMoments& moments, double ridge);

/// Residual variance (of y as it stands in z) and R^2.
struct Quality {
  Estimated residual_variance;
  Estimated r_squared;
};
std::optional<Quality> quality(const Equations& equations);

}  // namespace eigenveil::noisy_gram
