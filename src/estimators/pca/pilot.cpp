// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/pilot.hpp"

#include <cmath>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {
namespace {

constexpr const char* kFirstMatrixLabel = "pilot";
constexpr double kFirstMatrixShare = 0.05;
// Of the variance of a row of length R, four times k lambda_k. The noise of a product with whitened directions is about
// 2 R sqrt(k lambda_k) where that of the matrix is R^2, and rounds use a bit less than half of their budget as well as
// one product would that knew its directions.
constexpr double kGramFrom = 0.45;

// Rows of one length have less noise, and directions of elliptical rows do not mind. What that bends of others may be
// half a percent of the variance (Fashion-MNIST, k = 3): not worth it where the matrix loses hardly more, and what a
// pilot foresees is up to twice what is lost. A length that is typical of the rows must be known.
constexpr double kHardlyLost = 0.012;
constexpr double kTypicallyLonger = 0.2;

// A filter bends what is found of rows that are not elliptical, whatever the noise is. So products are for components
// that the matrix would lose so much of, by the noise of the whole budget: about all of them are hidden in the pilot.
constexpr double kHardlySeen = 0.03;

// lambda_k from a noisy matrix: above the level b of all directions noise of deviation sigma lifts x0 to x = x0 +
// sigma^2 d / x0 (Baik, Ben Arous, Peche). Of what lies below its edge nothing is known: half of x.
double without_noise(double value, double level, double sigma, double d) {
  const double x = std::max(0.0, value - level);
  return level + (x + std::sqrt(std::max(0.0, x * x - 4 * sigma * sigma * d))) / 2;
}

AfterPilot after(const ReleasedCovariance& pilot, const Vector& values, std::size_t components, double radius) {
  const auto d = static_cast<double>(pilot.covariance.cols());
  const auto k = static_cast<double>(components);
  const double level = std::max(0.0, pilot.covariance.trace() / d);
  const double sigma2 = d * pilot.noise * pilot.noise * kFirstMatrixShare;  // of all of the budget, in d directions
  double lost = 0, kept = 0, last = 0;
  for (std::size_t i = 0; i < components; ++i) {
    last = without_noise(values[static_cast<Eigen::Index>(i)], level, pilot.noise, d);
    const double above = std::max(last - level, 1e-300);
    lost += std::min(above, sigma2 / above);
    kept += last;
  }
  const double share = last / (radius * radius);
  const bool products = 4 * k * share < kGramFrom && lost > kHardlySeen * kept;
  const auto& found = pilot.prepared.found;
  const bool sphere = lost > kHardlyLost * kept && found && found->longer > kTypicallyLonger;
  return {products ? PcaMethod::kAdaptivePower : sphere ? PcaMethod::kSphere : PcaMethod::kGram, share};
}

// Both, weighted by their precision
ReleasedCovariance joined(const ReleasedCovariance& a, const ReleasedCovariance& b) {
  const double both = std::hypot(a.noise, b.noise);
  const double of_b = std::pow(a.noise / both, 2);
  return {(1 - of_b) * a.covariance + of_b * b.covariance, a.prepared, a.noise / both * b.noise};
}

// What each component captures of the variance of all rows: the pilot knows both.
Judge with_shares(Judge judge, const ReleasedCovariance& pilot, const Matrix& components) {
  const double trace = pilot.covariance.trace();
  if (!(trace > 0)) return judge;
  const auto d = static_cast<double>(components.rows()), k = static_cast<double>(components.cols());
  const Vector shares = (components.transpose() * pilot.covariance * components).diagonal() / trace;
  const double of_part = std::sqrt(2.0) * pilot.noise / trace;  // deviations: of an entry of the diagonal,
  const double of_trace = std::sqrt(d) * of_part;               // of their sum, relative,
  const double sampled = std::sqrt(2 / pilot.prepared.rows);    // and of a variance of so many rows
  const auto band = [=](double share, double parts) {
    const double wide = 1.96 * std::hypot(parts * of_part, share * std::hypot(of_trace, sampled));
    return Banded{std::clamp(share, 0.0, 1.0), std::clamp(share - wide, 0.0, 1.0), std::clamp(share + wide, 0.0, 1.0)};
  };
  return [judge = std::move(judge), shares, band, k]() -> Result<Verdict> {
    Verdict verdict = EIGENVEIL_TRY(judge());
    verdict.share = verdict.share_low = verdict.share_high = shares;
    for (Eigen::Index i = 0; i < shares.size(); ++i) {
      const Banded one = band(shares[i], 1);
      verdict.share[i] = one.value;
      verdict.share_low[i] = static_cast<std::size_t>(i) < verdict.found ? one.low : 0;
      verdict.share_high[i] = one.high;
    }
    verdict.explained = band(shares.sum(), std::sqrt(k));
    return verdict;
  };
}

}  // namespace

bool worth_a_pilot(std::size_t components, std::size_t columns) {
  // A direction that is wanted has at least its even share of the variance.
  return 4 * static_cast<double>(components) < kGramFrom * static_cast<double>(columns);
}

PrivacyPlan plan_pilot(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power) {
  const double whole = 1 / (1 - kFirstMatrixShare);
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, std::sqrt(whole)));
  plan.events.push_back({kFirstMatrixLabel, GaussianEvent{std::sqrt(kFirstMatrixShare * whole)}});
  for (PrivacyEvent& event : plan_rounds(options, power)) plan.events.push_back(std::move(event));
  return plan;
}

Result<PcaResult> fit_pilot(Oracle& oracle, const PcaOptions& options, const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  EIGENVEIL_TRY(check(shape, options));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.preparation));
  const double radius = oracle.shape().lattice.radius;
  const auto first = EIGENVEIL_TRY(oracle.ask(kFirstMatrixLabel, Gram{}));
  const ReleasedCovariance pilot = covariance_of(first, prepared);
  const std::size_t width = power_widths(options, shape.columns, power).front();
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(pilot.covariance, width));
  const AfterPilot next = after(pilot, pairs.values, options.components, radius);
  if (next.chosen == PcaMethod::kAdaptivePower) {
    // Of all directions but those that are wanted
    double level = pilot.covariance.trace();
    for (std::size_t i = 0; i < options.components; ++i)
      level -=
          without_noise(pairs.values[static_cast<Eigen::Index>(i)], 0, pilot.noise, static_cast<double>(shape.columns));
    level /= static_cast<double>(shape.columns - options.components);
    auto found = EIGENVEIL_TRY(fit_rounds(oracle, options, power, prepared, {std::move(pairs.vectors), level}));
    found.after_pilot = next;
    found.judge = with_shares(std::move(found.judge), pilot, found.components);
    return found;
  }
  const auto ask = [&] { return oracle.ask_rest(kCovarianceLabel, Gram{}); };
  auto found = next.chosen == PcaMethod::kSphere
                   ? components_on_sphere(oracle, prepared, options, ask)
                   : components_of(joined(pilot, covariance_of(EIGENVEIL_TRY(ask()), prepared)), options, radius);
  if (found) found->after_pilot = next;
  return found;
}

}  // namespace eigenveil
