// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/noise.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace eigenveil::federation {
namespace {

// 64 deviations per site and one sensitivity per row, in shifted units, below 2^62: at the edge and one beyond it.
TEST(FitsNarrow, UpToTwoToTheSixtyTwoAndNotBeyond) {
  const NoiseScale noise{.shift = 2, .coarse = 0, .sigma = std::uint64_t{1} << 42, .sigma_off = 0};  // 2^40 unshifted
  const Sensitivity moved(0x1p20);
  const double noisy = 3 * 64 * 0x1p40;  // of three sites
  const auto edge = static_cast<std::size_t>((0x1p60 - noisy) / 0x1p20);
  EXPECT_TRUE(fits_narrow(moved, noise, 3, edge - 1));
  EXPECT_FALSE(fits_narrow(moved, noise, 3, edge));
  EXPECT_FALSE(fits_narrow(moved, noise, 4, edge - 1)) << "every site has noise of its own";
  const NoiseScale finer{.shift = 3, .coarse = 0, .sigma = std::uint64_t{1} << 43, .sigma_off = 0};
  EXPECT_FALSE(fits_narrow(moved, finer, 3, edge - 1)) << "what is shifted further is larger";
  EXPECT_FALSE(fits_narrow(moved, noise, 3, SIZE_MAX));
}

}  // namespace
}  // namespace eigenveil::federation
