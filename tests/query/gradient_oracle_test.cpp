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
  return GradientOracle::make(reservation, 50, entries, SecureRandom::insecure(7), answered);
}

const GradientOracle::Function kZero = [](const std::vector<std::size_t>&, std::uint64_t) {
  return Result(std::vector<double>(4000));
};

TEST(GradientOracle, TakesNoiseAndRateFromThePlanAlone) {
  const auto paid = reserve_without_ledger(plan_of(0.2, 3, 2));
  auto oracle = oracle_over(*paid, 4000);
  ASSERT_TRUE(oracle.ok());
  std::size_t drawn = 0;
  const auto answer = oracle->ask(kLabel, 1, [&](const std::vector<std::size_t>& batch, std::uint64_t seed) {
    drawn = batch.size();
    return kZero(batch, seed);
  });
  ASSERT_TRUE(answer.ok());
  // sigma = 3 of 2 clip, to six deviations of 1 / sqrt(2 n)
  EXPECT_NEAR(std::sqrt(answer->value().squaredNorm() / 4000) / 6, 1, 6 / std::sqrt(8000.0));
  EXPECT_LT(drawn, 40U);
  EXPECT_FALSE(oracle->complete());
  EXPECT_TRUE(oracle->ask(kLabel, 1, kZero).ok());
  EXPECT_TRUE(oracle->complete());
}

TEST(GradientOracle, AnswersNothingBeyondThePlan) {
  const auto paid = reserve_without_ledger(plan_of(0.5, 1, 3));
  auto oracle = oracle_over(*paid, 4000, 2);  // two were answered before
  ASSERT_TRUE(oracle.ok());
  EXPECT_TRUE(oracle->ask(kLabel, 1, kZero).ok());
  EXPECT_FALSE(oracle->ask(kLabel, 1, kZero).ok());
  EXPECT_FALSE(oracle_over(*paid, 4000, 4).ok());
}

TEST(GradientOracle, RefusesAnotherLabelBeforeAnyRowIsTouched) {
  const auto paid = reserve_without_ledger(plan_of(1, 1, 3));
  auto oracle = oracle_over(*paid, 4000);
  bool touched = false;
  EXPECT_FALSE(oracle
                   ->ask("gradient", 1,
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
    auto oracle = GradientOracle::make(*paid, 5, 1, SecureRandom::insecure(3), 0, {0, 0, 0, 0, 1}, least);
    ASSERT_TRUE(oracle.ok());
    std::vector<double> drawn(5);
    for (int step = 0; step < kSteps; ++step)
      ASSERT_TRUE(oracle
                      ->ask(kLabel, 1,
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
  EXPECT_FALSE(GradientOracle::make(*paid, 5, 1, SecureRandom::insecure(3), 0, {0, 0}).ok());
}

TEST(GradientOracle, RefusesAPlanBetweenOtherNeighbours) {
  const auto paid = reserve_without_ledger(plan_of(1, 1, 1, Adjacency::kReplaceOne));
  EXPECT_THAT(oracle_over(*paid, 4).error().message, HasSubstr("add-remove-one"));
}

TEST(GradientOracle, AnEmptyBatchIsZeroWithItsNoise) {
  const auto paid = reserve_without_ledger(plan_of(1e-12, 2, 1));
  auto oracle = oracle_over(*paid, 4000);
  const auto answer = oracle->ask(kLabel, 1, [](const std::vector<std::size_t>&, std::uint64_t) {
    return Result<std::vector<double>>(internal_error("never called"));
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(answer->value().norm(), 0);
}

// ---- sums of vectors that are clipped one by one

constexpr const char* kEach = "noisy sum of gradients";

PrivacyPlan both_of(double q, double sigma, long long count) {
  return PrivacyPlan(Adjacency::kAddRemoveOne, {{kEach, PoissonGaussianEvent{q, sigma}, count},
                                                {kLabel, PoissonGaussianEvent{q, 2 * sigma}, count}});
}

// Row i has the vector (scale, 0, 0, ...).
GradientOracle::EachFunction along_first(std::size_t entries, double scale) {
  return [=](const std::vector<std::size_t>& rows, const std::vector<std::uint64_t>& seeds) {
    EXPECT_EQ(rows.size(), seeds.size());
    std::vector<double> vectors(rows.size() * entries);
    for (std::size_t i = 0; i < rows.size(); ++i) vectors[i * entries] = scale;
    return Result(std::move(vectors));
  };
}

TEST(GradientOracle, ClipsEachRowAndNoisesTheSumForOneClip) {
  constexpr std::size_t kEntries = 4000;
  const auto paid = reserve_without_ledger(both_of(1, 3, 1));
  auto oracle = oracle_over(*paid, kEntries);
  const auto answer = oracle->ask_each(kEach, 0.5, 7, along_first(kEntries, 100));
  ASSERT_TRUE(answer.ok());
  const Vector v = answer->value().col(0);
  // 50 rows of length 0.5; sigma = 3 of one clip, to six deviations
  EXPECT_NEAR(v[0], 25, 6 * 1.5);
  EXPECT_NEAR(std::sqrt(v.tail(kEntries - 1).squaredNorm() / (kEntries - 1)) / 1.5, 1,
              6 / std::sqrt(2.0 * (kEntries - 1)));
}

TEST(GradientOracle, SumsDoNotDependOnHowManyRowsAreTakenAtOnce) {
  const auto sum_of = [](std::size_t at_once) {
    const auto paid = reserve_without_ledger(both_of(0.5, 1, 1));
    auto oracle = oracle_over(*paid, 3);
    return oracle
        ->ask_each(kEach, 1, at_once,
                   [](const std::vector<std::size_t>& rows, const std::vector<std::uint64_t>& seeds) {
                     std::vector<double> vectors;
                     for (std::size_t i = 0; i < rows.size(); ++i)
                       for (const double x : {static_cast<double>(rows[i]), 1.0, static_cast<double>(seeds[i] % 97)})
                         vectors.push_back(x);
                     return Result(std::move(vectors));
                   })
        ->value();
  };
  const Matrix once = sum_of(1000);
  for (const std::size_t at_once : {0U, 1U, 2U, 7U}) EXPECT_EQ(sum_of(at_once), once) << at_once;
}

TEST(GradientOracle, WhatIsNotFiniteCountsAsZero) {
  const auto paid = reserve_without_ledger(both_of(1, 1e-3, 1));
  auto oracle = oracle_over(*paid, 2);
  const auto answer =
      oracle->ask_each(kEach, 1, 50, [](const std::vector<std::size_t>& rows, const std::vector<std::uint64_t>&) {
        std::vector<double> vectors;
        for (const std::size_t row : rows) {
          const double x = row == 3 ? std::nan("") : row == 4 ? INFINITY : 1;
          vectors.insert(vectors.end(), {x, 0});
        }
        return Result(std::move(vectors));
      });
  ASSERT_TRUE(answer.ok());
  EXPECT_NEAR(answer->value()(0, 0), 48, 0.1);
}

TEST(GradientOracle, KindsTakeTurnsAndEachHasItsOwnNoise) {
  const auto paid = reserve_without_ledger(both_of(1, 1, 2));
  auto oracle = oracle_over(*paid, 4000);
  for (int step = 0; step < 2; ++step) {
    EXPECT_FALSE(oracle->complete());
    EXPECT_TRUE(oracle->ask_each(kEach, 1, 10, along_first(4000, 0)).ok());
    const auto batch = oracle->ask(kLabel, 1, kZero);
    ASSERT_TRUE(batch.ok());
    EXPECT_NEAR(std::sqrt(batch->value().squaredNorm() / 4000) / 4, 1, 6 / std::sqrt(8000.0));
  }
  EXPECT_TRUE(oracle->complete());
  EXPECT_FALSE(oracle->ask_each(kEach, 1, 10, along_first(4000, 0)).ok()) << "beyond the plan";
  EXPECT_FALSE(oracle->complete());
  EXPECT_FALSE(oracle->ask(kLabel, 1, kZero).ok()) << "after a refusal";
}

TEST(GradientOracle, ResumesBothKinds) {
  const auto paid = reserve_without_ledger(both_of(1, 1, 3));
  auto oracle = oracle_over(*paid, 4000, 2);
  EXPECT_TRUE(oracle->ask_each(kEach, 1, 10, along_first(4000, 0)).ok());
  EXPECT_TRUE(oracle->ask(kLabel, 1, kZero).ok());
  EXPECT_TRUE(oracle->complete());
}

}  // namespace
}  // namespace eigenveil
