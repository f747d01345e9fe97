// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/pca.hpp"

namespace eigenveil {

// Analyze Gauss (Dwork, Talwar, Thakurta, Zhang 2014): one noisy Gram matrix, then its top eigenvectors as
// post-processing. Costs n d^2 time and d^2 memory.

/// Every answer `fit_gram` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_gram(Adjacency adjacency, const PcaOptions& options);

/// The noisy second moment about the mean, less what the error of the mean adds to it on average, and what was learnt
/// on the way.
struct ReleasedCovariance {
  Matrix covariance;  ///< d x d
  Preparation prepared;
  double noise;  ///< standard deviation of an entry off the diagonal

  double edge() const;  ///< the largest eigenvalue that noise alone typically gives
};

/// Asks for everything that `plan_gram` holds.
Result<ReleasedCovariance> release_covariance(Oracle& oracle, const PreparationOptions& preparation);

/// What a verdict needs of it.
MomentMatrix moments_of(const ReleasedCovariance& released);
/// Judges its top eigenvectors.
Judge judge_of(ReleasedCovariance released, std::size_t components);

/// The oracle's plan is what `calibrate` made of `plan_gram`.
Result<PcaResult> fit_gram(Oracle& oracle, const PcaOptions& options);

}  // namespace eigenveil
