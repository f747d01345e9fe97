// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// How the total of a plan is certified.
enum class Accounting {
  kTight,  ///< exact for Gaussians, privacy-loss distributions (an upper bound within 1%) for everything else
  kZcdp,   ///< zero-concentrated DP and its optimal conversion: rests on the discrete law's own theorem alone
};

/// The smallest epsilon (rounded up) such that the composition of the events, with the noise that is really drawn, is
/// (epsilon, delta)-DP; infinity above 1000, where no guarantee is stated (src/privacy/slack.md).
Result<double> epsilon_of(const std::vector<PrivacyEvent>& events, Delta delta,
                          Accounting accounting = Accounting::kTight);

/// The smallest delta (rounded up) such that the composition of the events is (epsilon, delta)-DP.
/// 0 <= epsilon <= 1000; at 0 delta is the total-variation distance.
Result<double> delta_of(const std::vector<PrivacyEvent>& events, double epsilon,
                        Accounting accounting = Accounting::kTight);

/// Scales the one noise level of a plan so that its certified epsilon at delta is just below the budget, never
/// above. The mechanisms of `draft` carry relative weights: a scale s gives mu = s * weight, epsilon = s * weight
/// and sigma = weight / s.
Result<PrivacyPlan> calibrate(const PrivacyPlan& draft, Epsilon epsilon, Delta delta,
                              Accounting accounting = Accounting::kTight);

}  // namespace eigenveil
