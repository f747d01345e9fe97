// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/estimators/regress/estimated.hpp"

namespace eigenveil {

// Linear regression from one noisy Gram matrix: regress.proof.md has the equations, docs/methods/regress.md the words.

/// Noisy sums of z z^T for z = (r, y), r = (constant, x) or x alone.
struct NoisyMoments {
  Matrix M;            ///< symmetric, as released; y comes last
  double deviation;    ///< of the noise of an entry off the diagonal; sqrt 2 times as much on it
  double rows;         ///< for sampling errors alone
  double constant;     ///< height of the constant, which comes first; 0: there is none, rows are centred
  bool exact = false;  ///< the constant's own entry has no noise
};

/// How z comes from the columns: x_k = (column_k - offset_k) scale_k, and likewise y.
struct RegressUnits {
  Vector offset;  ///< of x
  Vector scale;
  double target_offset;
  double target_scale;
};

/// Where the rows were centred, if they were, and the noise of that.
struct ReleasedMean {
  Vector mean;       ///< of z
  double deviation;  ///< of an entry
};

/// In the columns' own units.
struct Regression {
  Estimated intercept;
  std::vector<Estimated> slopes;               ///< values are shrunk, intervals are not
  std::optional<Estimated> residual_variance;  ///< none: the noise is too large to tell
  std::optional<Estimated> r_squared;
  double noise_edge;       ///< largest eigenvalue that the noise alone would give M_rr
  double least_variation;  ///< smallest eigenvalue of M_rr
  double widening;         ///< typical ratio of an interval's length to that without privacy noise
};

/// `ridge`: added to the mean squares of x; none: what noise and data ask for. `centre`: needed without a constant.
Result<Regression> regression(const NoisyMoments& moments, const RegressUnits& units, std::optional<double> ridge,
                              const std::optional<ReleasedMean>& centre = {});

/// Rows are (x, y, constant).
struct RegressOptions {
  double constant;                            ///< its height
  Vector offset;                              ///< of x and y, one entry per feature
  Vector scale;                               ///< likewise, the weight of y included
  std::vector<std::string> names;             ///< of x and y
  std::vector<Eigen::Index> baselines;        ///< features of x that others add up to the constant with: left out
  std::vector<Eigen::Index> categories = {};  ///< the others that are categories: left out if noise hides them
  std::vector<Eigen::Index> drowned = {};     ///< those that were: what a fit found
  std::optional<double> ridge = {};           ///< none: auto
  bool complete = true;                       ///< no row can have been replaced by zero
  bool whole = true;                          ///< no row can have been shortened
};

/// Model "regress": coefficients (d), intercept (1), mean (d).
std::unique_ptr<Estimator> estimator(RegressOptions options);

/// The same from second moments that were released before, per row and about `centre`.
struct ReleasedMoments {
  Matrix second_moments;  ///< of x and y
  double deviation;       ///< of an entry off the diagonal
  double rows;
  ReleasedMean centre;
};
Result<Fit> fit_from(const ReleasedMoments& moments, const RegressOptions& options, Eigen::Index target);

}  // namespace eigenveil
