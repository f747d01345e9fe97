// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

namespace eigenveil::test {

/// Numbers that a hostile message may have where one is due.
inline const std::vector<double>& extremes() {
  static const std::vector<double> all = {0.0,
                                          -0.0,
                                          -1.0,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN(),
                                          -std::numeric_limits<double>::quiet_NaN(),
                                          std::numeric_limits<double>::denorm_min(),
                                          std::numeric_limits<double>::min(),
                                          std::numeric_limits<double>::max(),
                                          -std::numeric_limits<double>::max(),
                                          1e-300,
                                          1e300,
                                          0x1p61};
  return all;
}

}  // namespace eigenveil::test
