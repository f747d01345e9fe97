// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/estimators/pca/gram.hpp"

namespace eigenveil {

// Correlations of a covariance that was released: post-processing, which costs nothing (correlation.proof.md).

/// C = D^-1/2 S D^-1/2, D the diagonal of S. A feature whose variance cannot be told from noise has no correlations: it
/// is left out, its row and column are zero.
struct ReleasedCorrelation {
  Matrix correlation;                 ///< d x d
  Vector spread;                      ///< d: the deviation that each feature was divided by
  std::vector<std::size_t> left_out;  ///< features, ascending
  double noise;                       ///< of S: entry ij of C has deviation noise / (spread_i spread_j)
  double mean_deviation;              ///< tau of S
  double rows;
};

ReleasedCorrelation correlation_of(const ReleasedCovariance& released);

/// What noise, sampling and the error of the mean alone would typically give, from the top eigenvalues (descending) of
/// C.
double noise_line(const ReleasedCorrelation& released, const Vector& top);

/// Of the top eigenvectors of C: covariances are drawn again, with the noise of S, and become correlations again. Up to
/// kMostRerun features; above that nothing is said.
Judge judge_of(ReleasedCorrelation released, std::size_t components);

/// What a fit says about features that were left out; nothing if there are none.
void add_left_out(Fit& fit, const std::vector<std::size_t>& left_out, std::size_t features);

}  // namespace eigenveil
