// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// Eigenvalues: some by themselves, and one that many others have.
struct RowSpectrum {
  Vector top;
  double rest;
  double others;  ///< how many there are of `rest`
};

/// The spectrum of rows whose second moments have the spectrum `seen` after they were shortened to `radius`; without
/// one, after they were all made of length 1, and then the sum of the result is 1. For Gaussian rows: their lengths
/// vary no more than their spectrum says, and directions stay what they are. Rows of longer tails had larger
/// eigenvalues.
RowSpectrum unshortened(const RowSpectrum& seen, std::optional<double> radius);

/// The squared length that half of Gaussian rows of that spectrum exceed.
double middle_squared_length(const RowSpectrum& spectrum);

}  // namespace eigenveil
