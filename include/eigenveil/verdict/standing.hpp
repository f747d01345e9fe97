// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil {

/// How far a released direction can be trusted. The numbers are those of the array `verdict` of a model.
enum class Standing : std::uint8_t {
  kNoise = 0,  ///< its value is no larger than noise alone would give
  kWeak = 1,   ///< something is there, but its direction is not determined
  kPlane = 2,  ///< it is determined only together with its neighbours: the space that they span is
  kHolds = 3   ///< its direction is that of the truth: expected cos^2 of 0.9 or more
};

std::string_view name(Standing standing);

/// What is said of one direction. `first` to `last` (from 1) is the smallest run of directions around it that spans
/// what the truth spans; its own number where it holds, 0 where there is none.
struct Judged {
  Standing standing = Standing::kNoise;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// "PC1-3 hold, PC4-5 only as a plane, the rest is noise." `number` goes before the numbers: "PC".
std::string verdict_in_words(const std::vector<Judged>& judged, std::string_view number);

}  // namespace eigenveil
