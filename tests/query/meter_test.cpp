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

// sqrt(0.1^2 + 2 0.2^2) of a plan that has not begun; never more than what is left.
TEST(Meter, GivesAllThatIsLeftForOneAnswer) {
  Meter whole(plan());
  const auto all = whole.rest("sum");
  ASSERT_TRUE(all.ok());
  EXPECT_NEAR(*all, std::sqrt(0.09), 1e-12);
  EXPECT_LT(*all * *all, 0.1 * 0.1 + 2 * 0.2 * 0.2);
  EXPECT_TRUE(whole.complete());
  EXPECT_FALSE(whole.gaussian("step").ok()) << "nothing is left";
  EXPECT_FALSE(whole.complete());

  Meter begun(plan());
  EXPECT_TRUE(begun.gaussian("mean").ok() && begun.pure("search").ok() && begun.pure("search").ok());
  EXPECT_TRUE(begun.gaussian("step").ok());
  EXPECT_NEAR(*begun.rest("sum"), 0.2, 1e-12) << "one of two steps was answered";
  EXPECT_TRUE(begun.complete());
  EXPECT_FALSE(begun.rest("sum").ok()) << "once";
}

// 65536 terms of a bit more than half of the last place of their sum, each of which is rounded up to a whole one.
TEST(Meter, RoundingGivesNoMoreThanWhatIsLeftHoweverLongThePlan) {
  const double large = 0x1p20, small = std::sqrt(0.51 * 0x1p-12);
  constexpr int kMany = 65536;
  std::vector<PrivacyEvent> events = {{"first", GaussianEvent{large}}};
  for (int i = 0; i < kMany; ++i) events.push_back({std::to_string(i), GaussianEvent{small}});
  const auto rest = Meter(PrivacyPlan(Adjacency::kReplaceOne, events)).rest("sum");
  ASSERT_TRUE(rest.ok());
  const auto wide = [](double mu) { return static_cast<long double>(mu) * static_cast<long double>(mu); };
  EXPECT_LE(wide(*rest), wide(large) + kMany * wide(small));
}

TEST(Meter, GivesNothingForTheRestOfAPlanWithoutGaussianNoise) {
  Meter searches(PrivacyPlan(Adjacency::kReplaceOne, {{"search", PureEvent{0.05}, 2}}));
  EXPECT_FALSE(searches.rest("sum").ok());
  EXPECT_FALSE(searches.pure("search").ok()) << "everything is refused from then on";
  Meter sampled(PrivacyPlan(Adjacency::kAddRemoveOne,
                            {{"step", GaussianEvent{0.2}, 1}, {"batch", PoissonGaussianEvent{0.01, 1.0}, 5}}));
  EXPECT_FALSE(sampled.rest("sum").ok());
  EXPECT_FALSE(sampled.complete());
  Meter broken(plan());
  EXPECT_FALSE(broken.gaussian("step").ok());
  EXPECT_FALSE(broken.rest("sum").ok());
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

// Beyond epsilon 256 such noise once was zero always, and no delta said so.
TEST(Meter, NoPureAnswerHasNoiseThatIsPracticallyAlwaysZero) {
  for (const double bad : {100.0001, 101.0, 256.0, 257.0, 1000.0, 5000.0}) {
    EXPECT_FALSE(PureEpsilon::of(bad).ok()) << bad;
    EXPECT_THROW(PureEvent{bad}, std::domain_error) << bad;
  }
  EXPECT_EQ(PureEpsilon::of(100)->value(), 100);
}

}  // namespace
}  // namespace eigenveil
