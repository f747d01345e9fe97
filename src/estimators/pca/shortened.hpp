// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// Eigenvalues: some by themselves, and one that many others have.
struct RowSpectrum {
  Vector top;
  double rest;
  double others;         ///< how many there are of `rest`
  bool limited = false;  ///< Gaussian rows would have varied more in length than these did
  bool open = false;     ///< nearly all rows were shortened: how long they were cannot be told
};

/// At most that share of the rows is longer.
struct LengthLimit {
  double length;
  double longer;
};

/// The spectrum of rows whose second moments have the spectrum `seen` after they were shortened to `radius`; without
/// one, after they were all made of length 1, and then the sum of the result is 1. For Gaussian rows: their lengths
/// vary no more than their spectrum says, and directions stay what they are. Rows of longer tails had larger
/// eigenvalues. Where more Gaussian rows would have been longer than the limits let, rows were not Gaussian and vary
/// less: the result is `limited`, as much as the limits let, or half way from there to what is seen where that is half
/// of what Gaussian rows would have had.
RowSpectrum unshortened(const RowSpectrum& seen, std::optional<double> radius,
                        const std::vector<LengthLimit>& limits = {});

/// The covariance of what one row of that spectrum adds to the second moments after it was shortened: to its squares
/// along the top, and to the mean of those along all others.
Matrix covariance_of_squares(const RowSpectrum& whole, std::optional<double> radius);

/// The squared length that this share of Gaussian rows of that spectrum exceeds.
double squared_length(const RowSpectrum& spectrum, double longer);

/// Deviation of its logarithm among that many rows, of which the share `off` is miscounted.
double deviation_of_length(const RowSpectrum& spectrum, double longer, double rows, double off);

}  // namespace eigenveil
