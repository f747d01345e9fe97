// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "tests/support/processor_time.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

Epsilon eps(double value) { return *Epsilon::of(value); }
Delta del(double value) { return *Delta::of(value); }

PrivacyPlan gaussian_plan() {
  return PrivacyPlan(Adjacency::kAddRemoveOne, {{"gram", GaussianEvent{1}, 1}, {"counts", GaussianEvent{0.1}, 8}});
}
PrivacyPlan pure_plan() {
  return PrivacyPlan(Adjacency::kAddRemoveOne, {{"svt", PureEvent{1}, 8}, {"pick", PureEvent{0.37}, 2}});
}
PrivacyPlan mixed_plan() {
  return PrivacyPlan(Adjacency::kAddRemoveOne, {{"svt", PureEvent{1}, 8}, {"apply", GaussianEvent{1.6}, 8}});
}
PrivacyPlan poisson_plan() {
  return PrivacyPlan(Adjacency::kAddRemoveOne,
                     {{"step", PoissonGaussianEvent{0.02, 1}, 200}, {"svt", PureEvent{0.1}, 2}});
}

void expect_just_within(const PrivacyPlan& shape, double epsilon, double delta, Accounting accounting) {
  const auto plan = calibrate(shape, eps(epsilon), del(delta), accounting);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const double certified = *epsilon_of(plan->events, del(delta), accounting);
  EXPECT_LE(certified, epsilon) << delta;
  EXPECT_GE(certified, 0.999 * epsilon) << delta;
}

TEST(Calibrate, LandsJustWithinTheBudgetNeverAbove) {
  for (double epsilon : {1e-3, 0.1, 1.0, 8.0, 100.0})
    for (double delta : {1e-2, 1e-6, 1e-30})
      for (const PrivacyPlan& shape : {gaussian_plan(), pure_plan(), mixed_plan(), poisson_plan()})
        expect_just_within(shape, epsilon, delta, Accounting::kTight);
}

TEST(Calibrate, LandsJustWithinTheBudgetUnderZcdp) {
  for (double epsilon : {1e-6, 0.1, 1.0, 100.0})
    for (const PrivacyPlan& shape : {gaussian_plan(), pure_plan(), mixed_plan()})
      expect_just_within(shape, epsilon, 1e-6, Accounting::kZcdp);
}

TEST(Calibrate, ReachesTinyAndHugeBudgets) {
  for (double epsilon : {1e-6, 1000.0})
    for (const PrivacyPlan& shape : {gaussian_plan(), mixed_plan()})
      expect_just_within(shape, epsilon, 1e-12, Accounting::kTight);
}

TEST(Calibrate, KeepsLabelsCountsAndRelativeWeights) {
  const auto plan = *calibrate(mixed_plan(), eps(1), del(1e-6));
  ASSERT_EQ(plan.events.size(), 2U);
  EXPECT_EQ(plan.events[0].label, "svt");
  EXPECT_EQ(plan.events[1].count, 8);
  EXPECT_NEAR(
      std::get<GaussianEvent>(plan.events[1].mechanism).mu / std::get<PureEvent>(plan.events[0].mechanism).epsilon, 1.6,
      1e-12);
  const auto sampled = *calibrate(poisson_plan(), eps(1), del(1e-6));
  const auto& step = std::get<PoissonGaussianEvent>(sampled.events[0].mechanism);
  EXPECT_EQ(step.q, 0.02);
  EXPECT_NEAR(step.sigma * std::get<PureEvent>(sampled.events[1].mechanism).epsilon, 0.1, 1e-12);
}

TEST(Calibrate, GivesOneGaussianTheMuOfTheClosedForm) {
  const auto plan = *calibrate(PrivacyPlan(Adjacency::kReplaceOne, {{"", GaussianEvent{3}, 1}}), eps(1), del(1e-6));
  const double mu = std::get<GaussianEvent>(plan.events[0].mechanism).mu;
  const double best = gaussian_mu(eps(1), del(1e-6));
  EXPECT_LE(mu, best);
  EXPECT_GE(mu, 0.999 * best);
}

TEST(Calibrate, RefusesWhatNoNoiseScaleCanMend) {
  EXPECT_FALSE(calibrate(PrivacyPlan(Adjacency::kReplaceOne), eps(1), del(1e-6)).ok());
  EXPECT_FALSE(calibrate(poisson_plan(), eps(1), del(1e-6), Accounting::kZcdp).ok());
  const auto covered =
      calibrate(PrivacyPlan(Adjacency::kAddRemoveOne, {{"", PoissonGaussianEvent{1e-4, 1}, 10}}), eps(1), del(0.01));
  ASSERT_FALSE(covered.ok());
  EXPECT_THAT(covered.error().message, HasSubstr("smaller delta"));
}

TEST(Calibrate, FitsAMixedPlanInASecond) {
  const double took = test::processor_seconds([] { EXPECT_TRUE(calibrate(mixed_plan(), eps(1), del(1e-6)).ok()); });
  EXPECT_LT(took, 1) << "about 0.02 s on an idle core";
}

}  // namespace
}  // namespace eigenveil
