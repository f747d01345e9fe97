// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/gaussian_dp.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <vector>

namespace eigenveil {
namespace {

// The same cases in every run; RC_PARAMS in the environment overrides it.
[[maybe_unused]] const bool kSeeded = ::setenv("RC_PARAMS", "seed=20261115", 0) == 0;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Epsilon eps(double value) { return *Epsilon::of(value); }
Delta del(double value) { return *Delta::of(value); }

struct Spot {
  double mu;
  double epsilon;
  double log_delta;
};

// Both normal probabilities from their Taylor series in 2200-digit decimal arithmetic, with no step in common
// with the code under test.
const std::vector<Spot> kSpots = {
    {0.2367, 1, -1.38158915727588562853e+1},     {1, 1, -2.06406644650039053449e+0},
    {1e-6, 1e-6, -1.63006310836769947855e+1},    {0.001, 0.03, -4.64617409164304500475e+2},
    {1e-6, 2e-5, -2.20733339067389496344e+2},    {2, 10, -1.15189231334679194823e+1},
    {40, 1000, -1.51873906989167407761e+1},      {10, 420, -6.90579173463238005601e+2},
    {30, 1000, -1.72364639137491452738e+2},      {50, 10, -8.89398597953772789941e-136},
    {0.5, 0.000001, -1.62246109680406856210e+0}, {3, 0, -1.43425206861177099610e-1},
    {0.01, 0.0001, -5.53662464864279547351e+0},  {1, 36.5, -6.56115622306072901556e+2},
    {0.3, 8, -3.60260712426494484256e+2},        {0.49, 0.1, -1.86255611864976068019e+0},
    {0.51, 0.1, -1.81250925052096016258e+0},     {37, 900, -1.98204375425519529851e+1},
};

TEST(GaussianLogDelta, AgreesWithManyDigitArithmetic) {
  for (const Spot& spot : kSpots)
    EXPECT_NEAR(gaussian_log_delta(spot.mu, spot.epsilon) / spot.log_delta, 1, 3e-14) << spot.mu << ' ' << spot.epsilon;
}

TEST(GaussianLogDelta, IsNeverNanAndFallsInEpsilonFromTheLargestToTheSmallestNumbers) {
  for (double mu = 1e-300; mu < 1e300; mu *= 31.7) {
    double last = 0;
    for (double epsilon = 1e-300; epsilon < 1e300; epsilon *= 31.7) {
      const double here = gaussian_log_delta(mu, epsilon);
      ASSERT_FALSE(std::isnan(here)) << mu << ' ' << epsilon;
      ASSERT_TRUE(here <= last || here - last < -1e-12 * last) << mu << ' ' << epsilon;
      last = here;
    }
  }
  EXPECT_EQ(gaussian_log_delta(kInfinity, 5), 0);
  EXPECT_EQ(gaussian_log_delta(1, kInfinity), -kInfinity);
  EXPECT_EQ(gaussian_log_delta(0, 1), -kInfinity);
}

TEST(GaussianLogDelta, IsContinuousWhereTheFormulaChanges) {
  EXPECT_TRUE(rc::check("neighbouring arguments give neighbouring values", [] {
    const double x = *rc::gen::inRange(0, 4000) / 100.0;
    const double mu = 0.5 * std::max(1.0, x);  // integrated below, subtracted above
    const double epsilon = mu * (x + mu / 2);
    const double below = gaussian_log_delta(mu * (1 - 1e-13), epsilon);
    const double above = gaussian_log_delta(mu * (1 + 1e-13), epsilon);
    RC_ASSERT(std::abs(below - above) <= 1e-11 * (1 + std::abs(below)));
  }));
}

TEST(GaussianEpsilon, IsTheSmallestAtDelta) {
  EXPECT_TRUE(rc::check("delta just fits", [] {
    const double mu = std::exp(*rc::gen::inRange(-1400, 500) / 100.0);
    const double delta = std::exp(-*rc::gen::inRange(70, 69000) / 100.0);
    const double epsilon = gaussian_epsilon(mu, del(delta));
    RC_ASSERT(gaussian_log_delta(mu, epsilon) <= std::log(delta));
    if (epsilon > 0) RC_ASSERT(gaussian_log_delta(mu, epsilon * (1 - 1e-9)) > std::log(delta));
  }));
}

TEST(GaussianEpsilon, IsZeroWhenDeltaCoversTheTotalVariationAndInfiniteWithoutNoise) {
  EXPECT_EQ(gaussian_epsilon(1e-3, del(0.1)), 0);
  EXPECT_EQ(gaussian_epsilon(kInfinity, del(0.1)), kInfinity);
}

TEST(GaussianMu, IsTheLargestWithinTheBudget) {
  EXPECT_TRUE(rc::check("mu just fits", [] {
    const double epsilon = std::exp(*rc::gen::inRange(-1381, 690) / 100.0);
    const double delta = std::exp(-*rc::gen::inRange(70, 69000) / 100.0);
    const double mu = gaussian_mu(eps(epsilon), del(delta));
    RC_ASSERT(mu > 0);
    RC_ASSERT(gaussian_log_delta(mu, epsilon) <= std::log(delta));
    RC_ASSERT(gaussian_log_delta(mu * (1 + 1e-9), epsilon) > std::log(delta));
  }));
}

TEST(MuOfPure, PassesThroughTheCornerOfTheTradeOffCurve) {
  for (double epsilon : {1e-12, 1e-6, 0.01, 0.5, 0.999, 1.001, 3.0, 30.0, 600.0}) {
    const double mu = mu_of_pure(epsilon);
    // Phi(-mu/2) = 1 / (1 + e^eps)
    const double tail = std::erfc(mu / 2 / std::numbers::sqrt2) / 2;
    EXPECT_NEAR(tail * (1 + std::exp(epsilon)), 1, 1e-12 * (1 + mu * mu)) << epsilon;
  }
  EXPECT_NEAR(mu_of_pure(1e-9) / 1e-9, std::sqrt(2 * std::numbers::pi) / 2, 1e-9);
  EXPECT_EQ(mu_of_pure(0), 0);
  EXPECT_EQ(mu_of_pure(kInfinity), kInfinity);
}

// A pure answer's delta at e is (e^eps - e^e) / (1 + e^eps) at most; its Gaussian stand-in's must cover it.
TEST(MuOfPure, GivesAGaussianThatIsNoMorePrivateThanThePureAnswer) {
  for (double epsilon : {1e-6, 0.01, 0.5, 1.0, 3.0, 10.0})
    for (double part : {0.0, 0.1, 0.5, 0.9, 0.999}) {
      const double pure = std::exp(part * epsilon) * std::expm1((1 - part) * epsilon) / (1 + std::exp(epsilon));
      EXPECT_GE(gaussian_log_delta(mu_of_pure(epsilon), part * epsilon), std::log(pure) - 1e-12)
          << epsilon << ' ' << part;
    }
}

}  // namespace
}  // namespace eigenveil
