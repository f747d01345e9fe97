// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/choices.hpp"
#include "eigenveil/estimators/preparation.hpp"
#include "eigenveil/verdict/verdict.hpp"

namespace eigenveil {

struct PcaOptions {
  std::size_t components;  ///< k, from 1 to the number of columns
  PreparationOptions preparation;
  std::optional<std::size_t> sparsity;  ///< s: how many columns may have a loading; default: all
  Scale scale = Scale::kRange;
};

/// What the rest of a budget was spent on, and why.
struct AfterPilot {
  PcaMethod chosen;  ///< gram, sphere or adaptive-power
  double share;      ///< of the squared length of a row as long as the bound, of the last direction that is wanted
};

/// Principal components of the rows about `mean`, in the features' units (correlations: in deviations).
struct PcaResult {
  Matrix components;   ///< d x k, orthonormal columns, entry of largest magnitude positive
  Vector eigenvalues;  ///< of the covariance (second moment when mean is zero), less tau^2, descending
  Vector mean;
  double rows;                ///< public, or the released noisy count
  double noise_edge;          ///< the largest eigenvalue that the noise alone would typically produce
  double mean_deviation = 0;  ///< tau: of the noise of an entry of the mean; 0: none was released
  Judge judge = {};           ///< of the components
  Vector spread = {};         ///< correlations: deviations of the features, by which rows are divided; empty: by none
  std::vector<std::size_t> left_out = {};      ///< correlations: features that have none
  std::optional<AfterPilot> after_pilot = {};  ///< pilot
  std::optional<double> length = {};           ///< sphere: typical of the rows, which were all made of one length
};

/// Refuses more components than columns, and a sparsity that cannot hold the components.
Status check(const RowsShape& shape, const PcaOptions& options);

}  // namespace eigenveil
