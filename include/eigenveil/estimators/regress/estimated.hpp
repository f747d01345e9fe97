// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace eigenveil {

struct Interval {
  double lower;
  double upper;
};

struct Estimated {
  double value;
  std::optional<Interval> interval;  ///< of 95%; none: the noise leaves every value possible
};

}  // namespace eigenveil
