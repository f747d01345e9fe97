// SPDX-License-Identifier: Apache-2.0
#include "src/base/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace eigenveil {
namespace {

// (1 + 2^-30)^2 = 1 + 2^-29 + 2^-60: rounding the product loses the last term, a fused operation keeps it.
TEST(Arithmetic, IsNotContractedInTheLibrary) {
  volatile double a = 1 + 0x1p-30;
  const double rounded = 1 + 0x1p-29;
  EXPECT_EQ(product_minus(a, a, rounded), 0) << "compiled without -ffp-contract=off";
  EXPECT_EQ(std::fma(a, a, -rounded), 0x1p-60) << "what contraction would give";
}

}  // namespace
}  // namespace eigenveil
