// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// Privacy-loss distributions: any mix of valid, finite events, composed by FFT on a grid that is rounded
/// pessimistically. Both functions bound from above (proof: src/privacy/pld.proof.md); epsilon_of and delta_of use
/// the closed form instead where there is one.

/// The smallest epsilon >= 0 at ln delta; infinity where the numbers leave the range of double.
double pld_epsilon(const std::vector<PrivacyEvent>& events, double log_delta);

/// ln delta at epsilon >= 0; -infinity where delta is exactly 0 (pure events only).
double pld_log_delta(const std::vector<PrivacyEvent>& events, double epsilon);

}  // namespace eigenveil
