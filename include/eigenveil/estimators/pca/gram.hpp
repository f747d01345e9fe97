// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

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

/// From a noisy Gram matrix of rows that are prepared.
ReleasedCovariance covariance_of(const Answer& gram, const Preparation& prepared);

/// Asks for everything that `plan_gram` holds.
Result<ReleasedCovariance> release_covariance(Oracle& oracle, const PreparationOptions& preparation);

/// What a verdict needs of it.
MomentMatrix moments_of(const ReleasedCovariance& released);
/// Judges its top eigenvectors.
Judge judge_of(ReleasedCovariance released, std::size_t components);

/// Components of what was released of rows that reach as far as `radius`.
Result<PcaResult> components_of(ReleasedCovariance released, const PcaOptions& options, double radius);

/// The oracle's plan is what `calibrate` made of `plan_gram`. Of rows whose bound was found by a search, eigenvalues
/// are those that Gaussian rows had before they were shortened.
Result<PcaResult> fit_gram(Oracle& oracle, const PcaOptions& options);

// The same of rows that are all made of one length about the mean: the noise is that of typical rows, however long the
// longest are. Directions of elliptical rows stay what they are; eigenvalues are found again as if rows were Gaussian,
// with the middle of their lengths, which a search finds.

PrivacyPlan plan_sphere(Adjacency adjacency, PcaOptions options);
Result<PcaResult> fit_sphere(Oracle& oracle, PcaOptions options);

/// Of rows that are prepared, with a length that a search found; `ask` answers for the Gram matrix.
Result<PcaResult> components_on_sphere(Oracle& oracle, Preparation prepared, const PcaOptions& options,
                                       const std::function<Result<Answer>()>& ask);

}  // namespace eigenveil
