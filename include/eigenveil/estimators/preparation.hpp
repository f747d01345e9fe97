// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/event.hpp"
#include "eigenveil/query/oracle.hpp"

namespace eigenveil {

/// What several estimators call their second moments.
inline constexpr const char* kCovarianceLabel = "covariance";

/// What an estimator may need to learn about the rows before its own work, and pays for.
struct PreparationOptions {
  bool private_mean = false;      ///< release the mean, subtract it and bound the rows again
  std::optional<RowBound> bound;  ///< of the rows after the mean is subtracted; default: the bound before
  bool private_bound = false;     ///< then shorten the longest rows to a bound that is found privately
  double bound_quantile = 0.98;   ///< share of the rows that keep their length
};

struct Preparation {
  double rows;                ///< public, or a released noisy count: at least 1
  Vector mean;                ///< zero unless private_mean
  double mean_deviation = 0;  ///< of the noise of an entry of it
};

/// The events of the preparation, with weights relative to `remaining_weight`, the root of the sum of squares of the
/// weights of the estimator's own Gaussian events.
std::vector<PrivacyEvent> plan_preparation(Adjacency adjacency, const PreparationOptions& options,
                                           double remaining_weight);

/// Asks the events of `plan_preparation`: the first ones of the oracle's plan.
Result<Preparation> prepare(Oracle& oracle, const PreparationOptions& options);

}  // namespace eigenveil
