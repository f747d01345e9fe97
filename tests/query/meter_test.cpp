// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/meter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace eigenveil {
namespace {

PrivacyPlan plan() {
  return PrivacyPlan(
      Adjacency::kReplaceOne,
      {{"mean", GaussianEvent{0.1}, 1}, {"search", PureEvent{0.05}, 2}, {"step", GaussianEvent{0.2}, 2}});
}

void expect_closed(Meter& meter) {
  EXPECT_FALSE(meter.complete());
  EXPECT_FALSE(meter.gaussian("mean").ok());
  EXPECT_FALSE(meter.gaussian("step").ok());
}

TEST(Meter, GivesThePlansNoiseInItsOrder) {
  Meter meter(plan());
  EXPECT_EQ(*meter.gaussian("mean"), 0.1);
  EXPECT_EQ(*meter.pure("search"), 0.05);
  EXPECT_EQ(*meter.pure("search"), 0.05);
  EXPECT_EQ(*meter.gaussian("step"), 0.2);
  EXPECT_FALSE(meter.complete());
  EXPECT_EQ(*meter.gaussian("step"), 0.2);
  EXPECT_TRUE(meter.complete());
}

TEST(Meter, RefusesEverythingAfterAnAskOutOfOrder) {
  Meter meter(plan());
  EXPECT_TRUE(meter.gaussian("mean").ok());
  EXPECT_FALSE(meter.gaussian("mean").ok());
  expect_closed(meter);
}

TEST(Meter, RefusesWhatComesAfterTheLastAnswer) {
  Meter meter(PrivacyPlan(Adjacency::kReplaceOne, {{"step", GaussianEvent{0.2}, 1}}));
  EXPECT_TRUE(meter.gaussian("step").ok());
  EXPECT_FALSE(meter.gaussian("step").ok());
  EXPECT_FALSE(meter.complete());
}

TEST(Meter, RefusesAnotherKindOfNoise) {
  Meter pure(plan());
  EXPECT_FALSE(pure.pure("mean").ok());
  expect_closed(pure);
  Meter sampled(plan());
  EXPECT_FALSE(sampled.poisson("mean").ok());
  expect_closed(sampled);
}

// What no plan can hold, no meter can give: minus infinity once meant "no noise" and passed a comparison.
TEST(Meter, NoPlanHoldsANumberThatIsNoNoise) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -0.0, -1.0, infinity, -infinity, std::nan(""), -std::nan(""), 1e300, 5e-324,
                           std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()}) {
    EXPECT_FALSE(Mu::of(bad).ok()) << bad;
    EXPECT_FALSE(PureEpsilon::of(bad).ok()) << bad;
    EXPECT_FALSE(SampleRate::of(bad).ok()) << bad;
    EXPECT_FALSE(NoiseMultiplier::of(bad).ok()) << bad;
    EXPECT_THROW(GaussianEvent{bad}, std::domain_error) << bad;
    EXPECT_THROW(PureEvent{bad}, std::domain_error) << bad;
    EXPECT_THROW((PoissonGaussianEvent{bad, 1}), std::domain_error) << bad;
    EXPECT_THROW((PoissonGaussianEvent{0.5, bad}), std::domain_error) << bad;
  }
}

}  // namespace
}  // namespace eigenveil
