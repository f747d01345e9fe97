// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/gradient_oracle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLabel = "noisy gradient";

PrivacyPlan plan_of(double q, double sigma, long long count, Adjacency between = Adjacency::kAddRemoveOne) {
  return PrivacyPlan(between, {{kLabel, PoissonGaussianEvent{q, sigma}, count}});
}

Result<GradientOracle> oracle_over(Reservation& reservation, std::size_t entries, long long answered = 0) {
  return GradientOracle::make(reservation, 50, entries, 1, SecureRandom::insecure(7), kLabel, answered);
}

const GradientOracle::Function kZero = [](const std::vector<std::size_t>&, std::uint64_t) {
  return Result(std::vector<double>(4000));
};

TEST(GradientOracle, TakesNoiseAndRateFromThePlanAlone) {
  const auto paid = reserve_without_ledger(plan_of(0.2, 3, 2));
  auto oracle = oracle_over(*paid, 4000);
  ASSERT_TRUE(oracle.ok());
  std::size_t drawn = 0;
  const auto answer = oracle->ask(kLabel, [&](const std::vector<std::size_t>& batch, std::uint64_t seed) {
    drawn = batch.size();
    return kZero(batch, seed);
  });
  ASSERT_TRUE(answer.ok());
  // sigma = 3 of 2 clip, to six deviations of 1 / sqrt(2 n)
  EXPECT_NEAR(std::sqrt(answer->value().squaredNorm() / 4000) / 6, 1, 6 / std::sqrt(8000.0));
  EXPECT_LT(drawn, 40U);
  EXPECT_FALSE(oracle->complete());
  EXPECT_TRUE(oracle->ask(kLabel, kZero).ok());
  EXPECT_TRUE(oracle->complete());
}

TEST(GradientOracle, AnswersNothingBeyondThePlan) {
  const auto paid = reserve_without_ledger(plan_of(0.5, 1, 3));
  auto oracle = oracle_over(*paid, 4000, 2);  // two were answered before
  ASSERT_TRUE(oracle.ok());
  EXPECT_TRUE(oracle->ask(kLabel, kZero).ok());
  EXPECT_FALSE(oracle->ask(kLabel, kZero).ok());
  EXPECT_FALSE(oracle_over(*paid, 4000, 4).ok());
}

TEST(GradientOracle, RefusesAnotherLabelBeforeAnyRowIsTouched) {
  const auto paid = reserve_without_ledger(plan_of(1, 1, 3));
  auto oracle = oracle_over(*paid, 4000);
  bool touched = false;
  EXPECT_FALSE(oracle
                   ->ask("gradient",
                         [&](const std::vector<std::size_t>& batch, std::uint64_t seed) {
                           touched = true;
                           return kZero(batch, seed);
                         })
                   .ok());
  EXPECT_FALSE(touched);
}

// Rows 0 to 3 are one person's, row 4 another's: each person is drawn as often as a row would be, with one row, any of
// theirs as often; of a person of m rows with probability m / M where that is less. To six deviations.
TEST(GradientOracle, TakesPeopleWithOneRowEach) {
  constexpr int kSteps = 20000;
  for (const std::size_t least : {1U, 2U, 8U}) {
    const auto paid = reserve_without_ledger(plan_of(0.5, 1, kSteps));
    auto oracle = GradientOracle::make(*paid, 5, 1, 1, SecureRandom::insecure(3), kLabel, 0, {0, 0, 0, 0, 1}, least);
    ASSERT_TRUE(oracle.ok());
    std::vector<double> drawn(5);
    for (int step = 0; step < kSteps; ++step)
      ASSERT_TRUE(oracle
                      ->ask(kLabel,
                            [&](const std::vector<std::size_t>& batch, std::uint64_t) {
                              EXPECT_LE(std::count_if(batch.begin(), batch.end(), [](auto i) { return i < 4; }), 1);
                              for (const std::size_t i : batch) ++drawn[i];
                              return Result(std::vector<double>(1));
                            })
                      .ok());
    for (std::size_t i = 0; i < 5; ++i) {
      const double m = i < 4 ? 4 : 1;
      const double p = 0.5 / std::max(m, static_cast<double>(least));
      EXPECT_NEAR(drawn[i], kSteps * p, 6 * std::sqrt(kSteps * p * (1 - p))) << least << " " << i;
    }
  }
  const auto paid = reserve_without_ledger(plan_of(0.5, 1, 1));
  EXPECT_FALSE(GradientOracle::make(*paid, 5, 1, 1, SecureRandom::insecure(3), kLabel, 0, {0, 0}).ok());
}

TEST(GradientOracle, RefusesAPlanBetweenOtherNeighbours) {
  const auto paid = reserve_without_ledger(plan_of(1, 1, 1, Adjacency::kReplaceOne));
  EXPECT_THAT(oracle_over(*paid, 4).error().message, HasSubstr("add-remove-one"));
}

TEST(GradientOracle, AnEmptyBatchIsZeroWithItsNoise) {
  const auto paid = reserve_without_ledger(plan_of(1e-12, 2, 1));
  auto oracle = oracle_over(*paid, 4000);
  const auto answer = oracle->ask(kLabel, [](const std::vector<std::size_t>&, std::uint64_t) {
    return Result<std::vector<double>>(internal_error("never called"));
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(answer->value().norm(), 0);
}

}  // namespace
}  // namespace eigenveil
