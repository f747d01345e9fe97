// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/result.hpp"
#include "eigenveil/base/types.hpp"

namespace eigenveil {

// People are told apart by hashes of their ids: two are taken for one with a chance of 2^-96 in a release
// (src/rows/people.proof.md), which adds to delta. src/privacy/slack.md pays for it from these deltas on.

/// Of a release that protects people.
inline constexpr double kLeastDeltaOfPeople = 1e-18;
/// Of the limit of a data set that protects people: a million releases.
inline constexpr double kLeastLimitOfPeople = 1e-12;

/// Refuses what cannot be promised to people.
inline Status check_delta_of_people(Delta delta) {
  if (delta.value() >= kLeastDeltaOfPeople) return {};
  return usage_error("with `person` a `delta` below 1e-18 cannot be promised");
}

}  // namespace eigenveil
