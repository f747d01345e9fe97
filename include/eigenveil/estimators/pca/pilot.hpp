// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/power.hpp"

namespace eigenveil {

// Which of two ways suits rows is a matter of their spectrum, which is private. A twentieth of the budget buys a pilot:
// a noisy covariance matrix. Where it shows what is wanted, the rest buys the same matrix again (gram), or, where noise
// would cost some of it, that of rows made of one length (sphere); where what is wanted is small and noise hides it,
// products with few directions have less noise (adaptive-power, which begins where the pilot points). The plan is that
// of the products; the matrix takes what they would have had.

/// Every answer `fit_pilot` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_pilot(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power);

/// The oracle's plan is what `calibrate` made of `plan_pilot`.
Result<PcaResult> fit_pilot(Oracle& oracle, const PcaOptions& options, const PowerOptions& power);

/// Whether a pilot could say anything but gram: public.
bool worth_a_pilot(std::size_t components, std::size_t columns);

}  // namespace eigenveil
