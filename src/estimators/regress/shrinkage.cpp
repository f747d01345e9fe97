// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "eigenveil/linalg/decompositions.hpp"
#include "statistics.hpp"

namespace eigenveil::noisy_gram {
namespace {

double squared(double x) { return x * x; }

struct Spectrum {
  Vector values;
  double kept;  // how many times v is left in a row of the error
};

/// Eigenvalues w (ascending) of a matrix whose entries have noise of variance v. Those above the edge of the others are
/// spikes: x + v m / x inverted, weighted by their cos^2 (Benaych-Georges and Nadakuditi 2011). The others are pulled
/// to their mean by the share of their spread that noise explains.
Spectrum denoised_spectrum(const Vector& w, double v) {
  const Eigen::Index d = w.size();
  Eigen::Index m = d;
  while (m > 1 && w[m - 1] - w.head(m).mean() > 2.1 * std::sqrt(v * static_cast<double>(m))) --m;
  const auto count = static_cast<double>(m);
  const auto bulk = w.head(m).array();
  const double mean = bulk.mean();
  const double spread = std::max((bulk - mean).square().mean(), 1e-300);
  const double f = m < 2 ? 0 : std::clamp(1 - v * (count + 1) / spread, 0.0, 1.0);
  Spectrum out{w, std::min(f * (count + 1) + 2 * static_cast<double>(d - m), static_cast<double>(d + 1))};
  out.values.head(m) = (mean + f * (bulk - mean)).matrix();
  for (Eigen::Index i = m; i < d; ++i) {
    const double y = w[i] - mean;
    const double x = (y + std::sqrt(std::max(y * y - 4 * v * count, 0.0))) / 2;
    out.values[i] = mean + x * (1 - v * count / (x * x));
  }
  out.values = out.values.cwiseMax(1e-3 * std::abs(w.mean()) + 1e-12);
  return out;
}

/// What the prior of theta is made from, all of it released.
struct Denoised {
  Matrix G;      // second moments of (constant, x)
  Matrix GG;     // G with the constant's row and column left out of the product: G_.x G_x.
  double mean2;  // square of the mean of y, in units of the constant
  double m2;     // of the means of x
  double kept;
  double v;          // variance of the noise of a centred entry
  double variation;  // of y about its mean
  double top;        // largest variance of a slope
};

Denoised denoised(const NoisyMoments& moments) {
  const Matrix& M = moments.M;
  const Eigen::Index p = M.rows() - 1;
  const Eigen::Index d = p - 1;
  const double s2 = squared(moments.deviation);
  const double g11 = std::max(M(0, 0), 10 * squared(moments.constant));
  const Vector m = M.row(0).segment(1, d).transpose() / g11;
  Matrix S = M.block(1, 1, d, d) - g11 * m * m.transpose();
  S.diagonal().array() += s2 / g11;  // the mean's own noise
  Denoised out;
  out.m2 = m.squaredNorm();
  out.v = s2 * squared(1 + out.m2 / static_cast<double>(d));
  const SymmetricEigen eigen = symmetric_eigen(S);
  const Spectrum spectrum = denoised_spectrum(eigen.values, out.v);
  out.kept = spectrum.kept;
  Vector e(p);
  e << 1, m;
  out.G = g11 * e * e.transpose();
  out.G.bottomRightCorner(d, d) += eigen.vectors * spectrum.values.asDiagonal() * eigen.vectors.transpose();
  out.GG = out.G.rightCols(d) * out.G.bottomRows(d);
  out.variation = std::max(M(p, p) - squared(M(0, p)) / g11 + s2 / g11, std::sqrt(2 * s2));
  out.mean2 = std::max(squared(M(0, p)) - 2 * s2, 0.0) / squared(g11);
  // the trace is known to sqrt(2 d v)
  out.top = out.variation / std::max(spectrum.values.sum(), std::sqrt(2 * static_cast<double>(d) * out.v));
  return out;
}

struct Weighed {
  double log_weight;
  Vector theta;
};

/// The posterior mean if slopes have the variance t top and the intercept pa, and the log of its weight.
Weighed posterior(const NoisyMoments& moments, const Denoised& from, double t, double pa) {
  const Eigen::Index p = from.G.rows();
  const double s2 = squared(moments.deviation);
  const double tau2 = t * from.top;
  const Vector b = moments.M.topRightCorner(p, 1);
  // Sig = G Pi G + (1 - t) (variation / n) G + what is left of the Gram's noise times the prior + sigma^2 I
  Matrix Sig = tau2 * from.GG + pa * from.G.col(0) * from.G.row(0) + ((1 - t) * from.variation / moments.rows) * from.G;
  Sig(0, 0) += s2 * tau2 * static_cast<double>(p - 1);
  Sig.diagonal().tail(p - 1).array() += s2 * pa + from.kept * from.v * tau2;
  Sig.diagonal().array() += s2;
  const Ldlt ldlt(Sig);
  const Vector z = ldlt.solve(b);
  Vector theta = tau2 * (from.G * z);
  theta[0] *= tau2 > 0 ? pa / tau2 : 0;
  const double log_det = ldlt.diagonal().array().abs().log().sum();
  return {std::log(t) - (log_det + b.dot(z)) / 2, std::move(theta)};
}

/// Centred moments are those with a constant whose products with all else are zero.
NoisyMoments with_constant(const NoisyMoments& moments) {
  if (moments.constant > 0) return moments;
  const Eigen::Index size = moments.M.rows() + 1;
  NoisyMoments all{Matrix::Zero(size, size), moments.deviation, moments.rows, 1};
  all.M(0, 0) = moments.rows;
  all.M.bottomRightCorner(size - 1, size - 1) = moments.M;
  return all;
}

}  // namespace

Vector shrunk(const NoisyMoments& given) {
  constexpr int kGrid = 24;  // shares of variance explained, from 1e-3 to 1
  const NoisyMoments moments = with_constant(given);
  const Denoised from = denoised(moments);
  std::vector<Weighed> all;
  for (int i = 0; i < kGrid; ++i) {
    const double t = std::pow(10, -3 + 3.0 * i / (kGrid - 1));
    // The intercept is one more slope, or of its own.
    for (const double pa : {t * from.top, from.mean2 + t * from.top * from.m2})
      all.push_back(posterior(moments, from, t, pa));
  }
  const double most = std::max_element(all.begin(), all.end(), [](const Weighed& a, const Weighed& b) {
                        return a.log_weight < b.log_weight;
                      })->log_weight;
  Vector theta = Vector::Zero(from.G.rows());
  double total = 0;
  for (const Weighed& one : all) {
    const double weight = std::exp(one.log_weight - most);
    theta += weight * one.theta;
    total += weight;
  }
  theta /= total;
  return given.constant > 0 ? theta : Vector(theta.tail(theta.size() - 1));
}

Vector ridged(const NoisyMoments& moments, double ridge) {
  const Eigen::Index p = moments.M.rows() - 1;
  const SymmetricEigen eigen = symmetric_eigen(moments.M);
  const Matrix P = eigen.vectors * eigen.values.cwiseMax(0.0).asDiagonal() * eigen.vectors.transpose();
  Matrix R = P.topLeftCorner(p, p);
  R.diagonal().tail(moments.constant > 0 ? p - 1 : p).array() += moments.rows * ridge;
  // P_rr may be singular: the shortest solution.
  return shortest_least_squares(R, P.topRightCorner(p, 1));
}

}  // namespace eigenveil::noisy_gram
