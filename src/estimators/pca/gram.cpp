// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/gram.hpp"

#include <cmath>

#include "eigenveil/estimators/pca/correlation.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

// Truncated subspace iteration on the released matrix, Q <- qr(truncate(S Q)), then Rayleigh and Ritz.
Result<EigenPairs> sparse_eigenpairs(const Matrix& S, Matrix Q, std::size_t sparsity) {
  constexpr int kRounds = 60;
  Q = truncate_rows(Q, sparsity);
  for (int round = 0; round < kRounds; ++round) Q = truncate_rows(orthonormal(S * Q), sparsity);
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(Q.transpose() * S * Q, static_cast<std::size_t>(Q.cols())));
  return EigenPairs{pairs.values, Q * pairs.vectors};
}

}  // namespace

PrivacyPlan plan_gram(Adjacency adjacency, const PcaOptions& options) {
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, 1.0));
  plan.events.push_back({kCovarianceLabel, GaussianEvent{1.0}});
  return plan;
}

Result<ReleasedCovariance> release_covariance(Oracle& oracle, const PreparationOptions& preparation) {
  auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation));
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  const double noise = gram.deviation() / prepared.rows;
  // S~ = G / n - tau^2 I: the error r of the mean adds r r^T, tau^2 I on average.
  Matrix covariance = gram.value() / prepared.rows;
  covariance.diagonal().array() -= prepared.mean_deviation * prepared.mean_deviation;
  return ReleasedCovariance{std::move(covariance), std::move(prepared), noise};
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

Result<PcaResult> fit_gram(Oracle& oracle, const PcaOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  auto released = EIGENVEIL_TRY(release_covariance(oracle, options.preparation));
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
  if (correlation) {
    result.spread = correlation->spread;
    result.left_out = correlation->left_out;
    if (!options.sparsity) result.judge = judge_of(*std::move(correlation), options.components);
  } else if (!options.sparsity) {
    result.judge = judge_of(std::move(released), options.components);
  }
  return result;
}

}  // namespace eigenveil
