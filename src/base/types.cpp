// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/types.hpp"

#include <fmt/format.h>

namespace eigenveil::tag {

// The ranges for which src/privacy/slack.md is proved. NaN lies in none.

bool Epsilon::valid(double value) { return value >= 1e-6 && value <= 1000; }
std::string Epsilon::refusal(double value) {
  return fmt::format(
      "`epsilon` must lie between 0.000001 and 1000, but is {}; a common choice is between 0.1 and 10, and above that "
      "little is promised",
      value);
}

bool Delta::valid(double value) { return value >= 1e-300 && value <= 0.5; }
std::string Delta::refusal(double value) {
  return fmt::format("`delta` must lie between 1e-300 and 0.5, but is {}; a common choice is below 1 / number of rows",
                     value);
}

bool RowBound::valid(double value) { return value >= 1e-100 && value <= 1e100; }
std::string RowBound::refusal(double value) {
  return fmt::format("`row_bound` must lie between 1e-100 and 1e100, but is {}", value);
}

}  // namespace eigenveil::tag
