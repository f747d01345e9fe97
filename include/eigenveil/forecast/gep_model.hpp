// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/forecast/public_model.hpp"

namespace eigenveil {

enum class GepTask { kCca, kFda, kSir };
std::string_view name(GepTask task);

/// A guess of what the rows are like, from public knowledge alone: Gaussian rows with unit variances and
///   cca  `components` pairs of directions with correlation `signal`, everything else independent
///   fda  `classes` classes whose means lie `signal` deviations apart
///   sir  a response whose share `signal` (of its variance) is explained by one direction, cut into `classes` equal
///   slices
struct GepModel {
  GepTask task;
  std::size_t rows;         ///< n
  std::size_t columns = 0;  ///< d: of both views together for cca
  std::size_t x_columns = 0;
  std::size_t classes = 2;
  double signal;
  double row_bound;
  std::size_t components = 1;
  std::optional<std::size_t> sparsity = {};
};

/// Rows of the model with their classes. Their truth is the solution of the same rows without noise.
std::unique_ptr<PublicModel> public_model(const GepModel& model);

}  // namespace eigenveil
