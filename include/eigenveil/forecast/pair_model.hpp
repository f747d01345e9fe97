// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/forecast/public_model.hpp"

namespace eigenveil {

/// A guess of what pairs of vectors are like: Gaussian views, `dim` of their coordinates correlated, and then of unit
/// length.
struct PairModel {
  std::size_t rows;
  std::size_t x_columns;
  std::size_t y_columns;
  std::size_t dim = 2;
  double correlation = 0.8;
};

/// Their truth are heads that have the shared coordinates for rows.
std::unique_ptr<PublicModel> public_model(const PairModel& model);

}  // namespace eigenveil
