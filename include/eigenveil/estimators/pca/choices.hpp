// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class PcaMethod {
  kGram,           ///< one noisy covariance matrix: n d^2 time, d^2 memory
  kPower,          ///< noisy subspace iteration
  kSparsePower,    ///< the same with few loadings, filtered
  kAdaptivePower,  ///< the same with a filter that adapts to the rows: for many columns
  kSpiked,         ///< a few components and one noise variance
  kSphere,         ///< gram of rows that are made of one length: for long tails and loose bounds
  kPilot,          ///< a first noisy covariance matrix tells which of gram and adaptive-power the rest is spent on
};

enum class RowFilter {
  kOff,     ///< noise for the longest row that the bound allows
  kShrink,  ///< contributions above a privately found threshold are scaled down to it
  kDrop,    ///< contributions above it are left out, as in the paper
};

/// What makes features comparable.
enum class Scale {
  kRange,        ///< their public ranges alone
  kCorrelation,  ///< their deviations too, from the released covariance: components of the correlation matrix (gram)
};

/// What the guarantee of a spiked model rests on.
enum class Guarantee {
  kStrict,  ///< nothing: it holds for every data set
  kModel,   ///< that the rows are draws from the model
};

}  // namespace eigenveil
