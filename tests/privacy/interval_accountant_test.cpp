// SPDX-License-Identifier: Apache-2.0
// The library's accountant against one that shares nothing with it and rounds every step in a stated direction.
#include "tests/privacy/interval_accountant.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"

namespace eigenveil {
namespace {

using test::interval_epsilon;
using Events = std::vector<PrivacyEvent>;

constexpr double kReach = 12;

std::string words(const Events& events) {
  std::string all;
  for (const PrivacyEvent& event : events) all += to_text(event) + ' ';
  return all;
}

/// Not below the interval: the bound is one. Not above it by more than 1%: it is tight.
void expect_within(const Events& events, double delta, double step) {
  const auto truth = interval_epsilon(events, delta, step, kReach);
  const auto ours = epsilon_of(events, *Delta::of(delta));
  ASSERT_TRUE(ours.ok()) << ours.error().message;
  EXPECT_LE(truth.low, truth.high);
  EXPECT_GE(*ours, truth.low) << words(events) << "delta " << delta;
  EXPECT_LE(*ours, 1.01 * truth.high + 1e-9) << words(events) << "delta " << delta;
  // and the same curve read the other way
  if (!(truth.low > 0)) return;
  const auto back = delta_of(events, truth.low);
  ASSERT_TRUE(back.ok());
  EXPECT_GE(*back, delta * (1 - 1e-6)) << words(events) << "delta " << delta;
}

TEST(IntervalAccountant, HoldsTheClosedFormBetweenItsEnds) {
  for (const double mu : {0.3, 1.0, 2.0}) {
    const double truth = gaussian_epsilon(mu, *Delta::of(1e-6));
    const auto interval = interval_epsilon({{"", GaussianEvent{mu}, 1}}, 1e-6, 8e-3, 24);
    EXPECT_LE(interval.low, truth);
    EXPECT_GE(interval.high, truth);
    EXPECT_LT(interval.high - interval.low, 8.1e-3);
  }
  // Pure answers add up where delta is below the chance that all of them lose at once.
  const auto pure = interval_epsilon({{"", PureEvent{0.5}, 3}}, 1e-12, 1.0 / 128, 4);
  EXPECT_NEAR(pure.low, 1.5, 1e-6);
  EXPECT_NEAR(pure.high, 1.5, 1e-6);
}

TEST(IntervalAccountant, BoundsTheFastOneOnEveryKindOfPlan) {
  expect_within({{"", GaussianEvent{0.4}, 2}}, 1e-5, 8e-3);
  expect_within({{"", GaussianEvent{1}, 1}, {"", PureEvent{0.125}, 1}}, 1e-5, 1.0 / 256);  // fine: half a step of ours
  expect_within({{"", PureEvent{0.3}, 4}}, 1e-5, 8e-3);
  expect_within({{"", PoissonGaussianEvent{0.2, 0.9}, 3}}, 1e-5, 8e-3);
  expect_within({{"", PureEvent{0.25}, 2}, {"", GaussianEvent{0.5}, 1}, {"", PoissonGaussianEvent{0.1, 0.8}, 2}}, 1e-6,
                8e-3);
}

// A few random plans here; scripts/nightly draws many, from a fresh seed.
TEST(IntervalAccountant, BoundsTheFastOneOnRandomPlans) {
  const bool nightly = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  const unsigned seed = nightly ? std::random_device{}() : 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
  };
  for (int plan = 0; plan < (nightly ? 60 : 3); ++plan) {
    Events events;
    for (int kinds = 1 + static_cast<int>(random() % 3); kinds > 0; --kinds) {
      const long long count = 1 + static_cast<long long>(random() % 3);
      switch (random() % 3) {
        case 0:
          events.push_back({"", GaussianEvent{between(0.05, 0.9)}, count});
          break;
        case 1:
          events.push_back({"", PureEvent{between(0.02, 0.6)}, count});
          break;
        default:
          events.push_back({"", PoissonGaussianEvent{between(0.005, 0.9), between(0.6, 3)}, count});
      }
    }
    expect_within(events, between(1e-9, 1e-2), nightly ? 2e-3 : 8e-3);
  }
}

}  // namespace
}  // namespace eigenveil
