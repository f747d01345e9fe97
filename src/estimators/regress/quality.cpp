// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "statistics.hpp"

namespace eigenveil::noisy_gram {
namespace {

/// Covariance of g' M g and e' M e: 2 sigma^2 (g' e)^2 from the noise, 2 q^2 / n from Gaussian errors.
double covariance_of(const NoisyMoments& moments, const Vector& g, const Vector& e, double q) {
  double noise = std::pow(g.dot(e), 2);
  if (moments.exact) noise -= std::pow(g[0] * e[0], 2);
  return 2 * moments.deviation * moments.deviation * noise + 2 * q * q / moments.rows;
}

/// All k = 1 - R^2 in [0, 1] with (q - k t)^2 <= 3.84 (vqq - 2 k vqt + k^2 vtt) (Fieller 1954).
Interval r_squared_interval(double q, double t, double vqq, double vqt, double vtt) {
  const double A = t * t - kChi95 * vtt;
  const double B = q * t - kChi95 * vqt;
  const double C = q * q - kChi95 * vqq;
  if (!(A > 0)) return {0, 1};
  const double root = std::sqrt(std::max(B * B - A * C, 0.0));
  return {std::clamp(1 - (B + root) / A, 0.0, 1.0), std::clamp(1 - (B - root) / A, 0.0, 1.0)};
}

}  // namespace

std::optional<Quality> quality(const Equations& equations) {
  const NoisyMoments& moments = equations.moments();
  const Matrix& M = moments.M;
  const Eigen::Index p = equations.size();
  const double n = moments.rows;
  if (!(equations.least_variation() > equations.noise_edge()) || n <= static_cast<double>(p)) return std::nullopt;
  const Vector& g = equations.solution();
  // At its minimum g' M g is too small by what was fitted to the noise, and by p degrees of freedom.
  const double fitted = (equations.inverse() * equations.noise(g)).trace();
  const double q = std::max(0.0, (g.dot(M * g) + fitted) * n / (n - static_cast<double>(p)));
  Vector e = Vector::Unit(p + 1, p);
  double t = M(p, p);
  if (moments.constant > 0) {
    e[0] = -M(0, p) / M(0, 0);
    t = e.dot(M * e) + moments.deviation * moments.deviation / M(0, 0);
  }
  t = std::max(t, 1e-9);
  const double vqq = covariance_of(moments, g, g, q);
  const double reach = kNormal95 * std::sqrt(vqq);
  return Quality{{q / n, Interval{std::max(0.0, q - reach) / n, (q + reach) / n}},
                 {std::clamp(1 - q / t, 0.0, 1.0),
                  r_squared_interval(q, t, vqq, covariance_of(moments, g, e, q), covariance_of(moments, e, e, t))}};
}

}  // namespace eigenveil::noisy_gram
