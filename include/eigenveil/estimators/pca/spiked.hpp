// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/model_sensitivity.hpp"
#include "eigenveil/estimators/pca/power.hpp"

namespace eigenveil {

// Covariance of the form U diag(lambda) U^T + sigma^2 I, rank(U) = r (Cai, Xia, Zha 2024: the spiked model).
//   strict  U by gram or adaptive-power; then one r x r sum over the rows projected to U and shortened to a private
//           radius, and one sum of squared norms for sigma^2. Holds for every data set.
//   model   the paper's algorithm: a noisy projector and a noisy r x r block. Their sensitivities hold with a stated
//           probability if the rows are independent draws from the model, and need not hold otherwise.

enum class Subspace { kGram, kAdaptivePower };

struct SpikedOptions {
  std::optional<std::size_t> rank = {};  ///< r; default: as many eigenvalues as stand out of the noise (gram only)
  Guarantee guarantee = Guarantee::kStrict;
  Subspace subspace = Subspace::kGram;        ///< strict: where U comes from
  PowerOptions power = {};                    ///< kAdaptivePower
  std::optional<double> noise_variance = {};  ///< sigma^2, if it is known; default: released
  std::optional<double> spike = {};           ///< model: lambda, if it is known; default: from a pilot release
};

struct SpikedResult {
  PcaResult pca;  ///< U (d x r) and the eigenvalues lambda + sigma^2
  double noise_variance;
  std::optional<AssumedSensitivity> assumed = {};  ///< model: what its guarantee rests on
};

/// Every answer `fit_spiked` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_spiked(Adjacency adjacency, const PreparationOptions& preparation, const SpikedOptions& options);

/// The oracle's plan is what `calibrate` made of `plan_spiked`.
Result<SpikedResult> fit_spiked(Oracle& oracle, const PreparationOptions& preparation, const SpikedOptions& options);

/// How many eigenvalues of a released covariance (descending) stand out of what noise and sampling alone give: the
/// noise has eigenvalues up to `noise_edge`, the covariance comes from `rows` rows.
std::size_t rank_above_noise(const Vector& eigenvalues, double noise_edge, double rows);

/// The paper's rate (theorem 2 of 002, constant 1) for ||Sigma' - Sigma|| in the spectral norm: what n rows and the
/// noise of a budget leave unknown of p columns and r spikes. In the Schatten norm q it is r^(1/q) times that.
double spiked_rate(double n, double p, double r, double spike, double noise_variance, Epsilon epsilon, Delta delta);

/// Refuses a rank, variance or spike that cannot be.
Status check(std::size_t columns, Adjacency adjacency, const SpikedOptions& options);

}  // namespace eigenveil
