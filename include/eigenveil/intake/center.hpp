// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class Center {
  kNone,     ///< zero stays zero
  kRange,    ///< the middle of each column's public range becomes zero
  kPrivate,  ///< as kRange, then the released mean is subtracted: one sum, a fixed share of the budget
  kMean,     ///< as kRange, then the released mean: what it needs of the budget, found again with shorter rows
  kUsual,    ///< what suits the estimator: kMean for pca, covariance and cca, kRange for all others
};

/// Rows are moved by a released mean, and bounded again.
constexpr bool moves_rows(Center center) { return center == Center::kPrivate || center == Center::kMean; }

}  // namespace eigenveil
