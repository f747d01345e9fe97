// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Types, EpsilonBeyondWhatIsProvedCannotBeHeld) {
  for (const double bad : {5000.0, 2100.0, 1000.0000001, 9e-7, 0.0, -0.0, -1.0, kInfinity, -kInfinity, kNan, 5e-324}) {
    const auto refused = Epsilon::of(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("`epsilon` must lie between 0.000001 and 1000"));
  }
  for (const double good : {1e-6, 1.0, 1000.0}) EXPECT_EQ(Epsilon::of(good)->value(), good);
}

TEST(Types, DeltaBeyondWhatIsProvedCannotBeHeld) {
  for (const double bad : {0.99, 0.5000001, 1.0, 1e-310, 9e-301, 0.0, -1e-6, kInfinity, -kInfinity, kNan}) {
    const auto refused = Delta::of(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("between 1e-300 and 0.5"));
  }
  for (const double good : {1e-300, 1e-6, 0.5}) EXPECT_EQ(Delta::of(good)->value(), good);
}

TEST(Types, RowBoundsArePositiveAndFinite) {
  for (const double bad : {0.0, -1.0, kInfinity, kNan, 1e101}) EXPECT_FALSE(RowBound::of(bad).ok()) << bad;
  EXPECT_TRUE(RowBound::of(1).ok());
}

}  // namespace
}  // namespace eigenveil
