// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/gram.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/estimators/pca/correlation.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "shortened.hpp"

namespace eigenveil {
namespace {

// Truncated subspace iteration on the released matrix, Q <- qr(truncate(S Q)), then Rayleigh and Ritz.
Result<EigenPairs> sparse_eigenpairs(const Matrix& S, Matrix Q, std::size_t sparsity) {
  constexpr int kRounds = 60;
  Q = truncate_rows(Q, sparsity);
  for (int round = 0; round < kRounds; ++round) Q = truncate_rows(orthonormal(S * Q), sparsity);
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(Q.transpose() * S * Q, Q.cols()));
  return EigenPairs{pairs.values, Q * pairs.vectors};
}

}  // namespace

PrivacyPlan plan_gram(Adjacency adjacency, const PcaOptions& options) {
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, 1.0));
  plan.events.push_back({kCovarianceLabel, GaussianEvent{1.0}});
  return plan;
}

ReleasedCovariance covariance_of(const Answer& gram, const Preparation& prepared) {
  // S~ = G / n - tau^2 I: the error r of the mean adds r r^T, tau^2 I on average.
  Matrix covariance = gram.value() / prepared.rows;
  covariance.diagonal().array() -= prepared.mean_deviation * prepared.mean_deviation;
  return {std::move(covariance), prepared, gram.deviation() / prepared.rows};
}

Result<ReleasedCovariance> release_covariance(Oracle& oracle, const PreparationOptions& preparation) {
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation));
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  return covariance_of(gram, prepared);
}

double ReleasedCovariance::edge() const {
  return noise_edge(noise, prepared.mean_deviation, static_cast<double>(covariance.cols()));
}

MomentMatrix moments_of(const ReleasedCovariance& released) {
  return {released.covariance, released.noise, released.prepared.rows, released.prepared.mean_deviation};
}

Judge judge_of(ReleasedCovariance released, std::size_t components) {
  return [released = std::move(released), components] { return judge_moments(moments_of(released), components); };
}

namespace {

// What rows were before they were shortened, from the spectrum of what is left of them.
struct Whole {
  std::function<RowSpectrum(const RowSpectrum& seen)> of = {};
  double unseen = 1;  // by how much eigenvalues grow where noise left none above zero, so that nothing can be told
};

// By what factor each top eigenvalue grows, and the others.
struct Growth {
  Vector top;
  double rest;
  double total;
  double deviation = 0;  // relative, of all factors together
};

Growth growth_of(const Matrix& S, const Vector& top, const Whole& whole) {
  const double others = static_cast<double>(S.cols() - top.size());
  // Of what noise alone gives, which may be below zero, next to nothing is left; `unshortened` keeps more than that.
  const double sum_of_top = top.cwiseMax(0.0).sum();
  if (!(sum_of_top > 0)) return {Vector::Constant(top.size(), whole.unseen), whole.unseen, whole.unseen};
  const double least = 1e-6 * std::max(S.trace(), sum_of_top);
  const RowSpectrum seen{top.cwiseMax(least), others > 0 ? std::max((S.trace() - sum_of_top) / others, least) : least,
                         others};
  const RowSpectrum found = whole.of(seen);
  const auto sum = [](const RowSpectrum& one) { return one.top.sum() + one.rest * one.others; };
  return {found.top.cwiseQuotient(seen.top), found.rest / seen.rest, sum(found) / sum(seen)};
}

// The verdict on what was seen, in terms of whole rows.
Judge grown(Judge judge, Growth by) {
  return [judge = std::move(judge), by = std::move(by)]() -> Result<Verdict> {
    Verdict verdict = EIGENVEIL_TRY(judge());
    for (Vector* values : {&verdict.estimate, &verdict.low, &verdict.high}) *values = values->cwiseProduct(by.top);
    const auto widen = [&](double reach, double value) { return std::hypot(reach, 1.96 * by.deviation * value); };
    const Vector below = (verdict.estimate - verdict.low).binaryExpr(verdict.estimate, widen);
    const Vector above = (verdict.high - verdict.estimate).binaryExpr(verdict.estimate, widen);
    verdict.low = (verdict.low.array() > 0).select((verdict.estimate - below).cwiseMax(0.0), verdict.low);
    verdict.high = verdict.estimate + above;
    for (Vector* shares : {&verdict.share, &verdict.share_low, &verdict.share_high})
      if (shares->size() > 0) *shares = (shares->cwiseProduct(by.top) / by.total).cwiseMin(1.0);
    if (verdict.explained) {
      const double factor = verdict.share.sum() / std::max(verdict.explained->value, 1e-300);
      verdict.explained =
          Banded{std::min(1.0, verdict.explained->value * factor), std::min(1.0, verdict.explained->low * factor),
                 std::min(1.0, verdict.explained->high * factor)};
    }
    verdict.line *= by.rest;
    return verdict;
  };
}

Result<PcaResult> components_by(ReleasedCovariance released, const PcaOptions& options, const Whole& whole,
                                double deviation = 0) {
  std::optional<ReleasedCorrelation> correlation;
  if (options.scale == Scale::kCorrelation) correlation = correlation_of(released);
  const Matrix& S = correlation ? correlation->correlation : released.covariance;
  auto pairs = top_eigenpairs(S, options.components);
  if (!pairs) return pairs.error();
  if (options.sparsity) pairs = sparse_eigenpairs(S, pairs->vectors, *options.sparsity);
  if (!pairs) return pairs.error();
  fix_signs(pairs->vectors);
  const double edge =
      correlation ? noise_line(*correlation, pairs->values) : noise_line(moments_of(released), pairs->values);
  PcaResult result{pairs->vectors,         pairs->values, released.prepared.mean,
                   released.prepared.rows, edge,          released.prepared.mean_deviation};
  std::optional<Growth> by;
  if (whole.of && !correlation) {
    by = growth_of(S, pairs->values, whole);
    by->deviation = deviation;
    result.eigenvalues = result.eigenvalues.cwiseProduct(by->top);
    result.noise_edge *= by->rest;
  }
  if (correlation) {
    result.spread = correlation->spread;
    result.left_out = correlation->left_out;
    if (!options.sparsity) result.judge = judge_of(*std::move(correlation), options.components);
  } else if (!options.sparsity) {
    result.judge = judge_of(std::move(released), options.components);
    if (by) result.judge = grown(std::move(result.judge), *std::move(by));
  }
  return result;
}

}  // namespace

Result<PcaResult> components_of(ReleasedCovariance released, const PcaOptions& options, double radius) {
  Whole whole;
  if (released.prepared.bound_found) whole.of = [radius](const RowSpectrum& seen) { return unshortened(seen, radius); };
  return components_by(std::move(released), options, whole);
}

Result<PcaResult> fit_gram(Oracle& oracle, const PcaOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  auto released = EIGENVEIL_TRY(release_covariance(oracle, options.preparation));
  return components_of(std::move(released), options, oracle.shape().lattice.radius);
}

PrivacyPlan plan_sphere(Adjacency adjacency, PcaOptions options) {
  options.preparation.bound_by = BoundBy::kMiddle;
  return plan_gram(adjacency, options);
}

Result<PcaResult> fit_sphere(Oracle& oracle, PcaOptions options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  options.preparation.bound_by = BoundBy::kMiddle;
  auto prepared = EIGENVEIL_TRY(prepare(oracle, options.preparation));
  // Half of the rows are as long as R already. A bound that next to no row is shorter than makes the others as long.
  constexpr double kNextToNothing = 0x1p-10;
  const double R = oracle.shape().lattice.radius;
  const auto unit = EIGENVEIL_TRY(RowBound::of(R * kNextToNothing));
  EIGENVEIL_TRY(oracle.recenter(Vector::Zero(prepared.mean.size()), unit));
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  const double per_row = 1 / (prepared.rows * unit.value() * unit.value());
  // Rows of length 1 are about 1 / R as long as they were, and so is the error of the mean.
  const double tau = prepared.mean_deviation;
  Matrix S = gram.value() * per_row;
  S.diagonal().array() -= tau * tau / (R * R);
  ReleasedCovariance released{std::move(S), std::move(prepared), gram.deviation() * per_row};
  released.prepared.mean_deviation = tau / R;
  // The middle of the lengths lies within a step of the grid below R: in its middle, with the deviation of a number
  // that is anywhere in it, of its square.
  const double step = std::exp2(1.0 / kBoundsPerOctave);
  const double middle = R * R / step;
  const double deviation = 2 * std::log(step) / std::sqrt(12.0);
  const auto grow = [middle](const RowSpectrum& seen) {
    RowSpectrum found = unshortened(seen, {});
    const double scale = middle / std::max(middle_squared_length(found), 1e-300);
    found.top *= scale;
    found.rest *= scale;
    return found;
  };
  auto result = components_by(std::move(released), options, {grow, middle}, deviation);
  if (!result) return result;
  result->mean_deviation = tau;
  result->length = R;
  return result;
}

}  // namespace eigenveil
