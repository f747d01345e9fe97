// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

// How far one row moves a projector and a covariance when the rows are what the spiked model says. There is no bound
// for every data set, so it is found by drawing data sets from the model: src/estimators/pca/model_based.proof.md.

/// What the model assumes: public, or released before. N(0, U diag(spikes) U^T + noise_variance I)
struct SpikedModel {
  std::size_t rows;
  std::size_t columns;
  Vector spikes;  ///< positive, above the noise variance; fewer than columns
  double noise_variance;
};

/// Frobenius distances between a data set and its neighbours, the farthest over all rows.
struct RowSensitivity {
  double projector;  ///< of the projector on the top eigenvectors, as many as there are spikes
  double sum;        ///< of the sum of u u^T
};

/// One data set of the model, each of its rows replaced in turn by an independent copy.
RowSensitivity draw_sensitivity(const SpikedModel& model, std::mt19937_64& random);

/// What no more than a share `failure` of data sets exceeds, in either distance, with confidence `confidence`.
struct AssumedSensitivity {
  RowSensitivity bound;
  double failure;
  double confidence;
  std::size_t draws;  ///< data sets drawn to find it
};

inline constexpr double kModelFailure = 0.01;
inline constexpr double kModelConfidence = 0.95;

/// The largest distances among enough draws under a public seed: the same for the same arguments, and not found twice.
Result<AssumedSensitivity> assumed_sensitivity(const SpikedModel& model, double failure = kModelFailure,
                                               double confidence = kModelConfidence);

/// The fewest draws whose two largest values leave at most `failure` above them, with that confidence:
/// (1 - f)^M + M f (1 - f)^(M-1) <= 1 - confidence.
std::size_t draws_needed(double failure, double confidence);

}  // namespace eigenveil
