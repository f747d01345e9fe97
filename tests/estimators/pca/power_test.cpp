// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/power.hpp"

#include <gtest/gtest.h>

#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::gapped_rows;
using test::oracle_over;
using test::sin_squared;
using test::without_noise;

struct Setting {
  const char* name;
  RowFilter filter;
  bool narrow = true;  // and so remembers, if it filters
};

class PowerFamily : public ::testing::TestWithParam<Setting> {};

// Rows with covariance diag(9, 4, 1, 0.1, ...) in a random basis: gaps large enough for 40 rounds to converge.
RowMajorMatrix graded_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index d, Matrix& basis) {
  basis = orthonormal(test::normal_matrix(random, d, d));
  Vector scale = Vector::Constant(d, 0.3);
  scale.head(3) << 3, 2, 1;
  return test::normal_matrix(random, n, d) * scale.asDiagonal() * basis.transpose();
}

TEST_P(PowerFamily, WithoutNoiseConvergesToTheTopSubspace) {
  std::mt19937_64 random(1);
  Matrix basis;
  const RowMajorMatrix rows = graded_rows(random, 4000, 12, basis);
  const PcaOptions options{.components = 2};
  const PowerOptions power{.rounds = 60, .filter = GetParam().filter, .narrow = GetParam().narrow};
  const PrivacyPlan plan = without_noise(plan_power(Adjacency::kReplaceOne, options, power));
  auto oracle = oracle_over(rows, 20, plan, 1);
  const auto fit = fit_power(oracle, options, power);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_TRUE(oracle.complete()) << "its plan is what the oracle metered";
  EXPECT_LT((fit->components.transpose() * fit->components - Matrix::Identity(2, 2)).norm(), 1e-12);
  if (GetParam().filter == RowFilter::kOff) {
    const SymmetricEigen dense = symmetric_eigen(rows.transpose() * rows / 4000.0);
    EXPECT_LT(sin_squared(dense.vectors.rightCols(2), fit->components), 1e-9);
    EXPECT_LT((fit->eigenvalues - dense.values.tail(2).reverse()).cwiseAbs().maxCoeff(), 1e-3);
  } else {
    // a filter reweights rows: for Gaussian rows the directions stay, up to sampling
    EXPECT_LT(sin_squared(basis.leftCols(2), fit->components), 0.02);
  }
}

TEST_P(PowerFamily, MetersItsPlanUnderBothAdjacencies) {
  std::mt19937_64 random(2);
  Matrix basis;
  const RowMajorMatrix rows = graded_rows(random, 2000, 8, basis);
  PcaOptions options{.components = 2};
  options.preparation.mean = MeanBy::kOnce;
  const PowerOptions power{.rounds = 3, .filter = GetParam().filter, .narrow = GetParam().narrow};
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const auto plan = calibrate(plan_power(adjacency, options, power), *Epsilon::of(2), *Delta::of(1e-6));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(*epsilon_of(plan->events, *Delta::of(1e-6)), 2);
    auto oracle = oracle_over(rows, 12, *plan, 3);
    const auto fit = fit_power(oracle, options, power);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_TRUE(oracle.complete());
  }
}

TEST_P(PowerFamily, ThreadsDoNotChangeTheAnswer) {
  std::mt19937_64 random(4);
  Matrix basis;
  const RowMajorMatrix rows = graded_rows(random, 3000, 10, basis);
  const PcaOptions options{.components = 2};
  const PowerOptions power{.rounds = 3, .filter = GetParam().filter, .narrow = GetParam().narrow};
  const auto plan = calibrate(plan_power(Adjacency::kReplaceOne, options, power), *Epsilon::of(1), *Delta::of(1e-6));
  auto one = oracle_over(rows, 12, *plan, 9, 1);
  const auto expected = fit_power(one, options, power);
  for (const int threads : {2, 7}) {
    auto many = oracle_over(rows, 12, *plan, 9, threads);
    EXPECT_EQ(fit_power(many, options, power)->components, expected->components);
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, PowerFamily,
                         ::testing::Values(Setting{"off", RowFilter::kOff}, Setting{"shrink", RowFilter::kShrink},
                                           Setting{"drop", RowFilter::kDrop},
                                           Setting{"forgetful", RowFilter::kShrink, false}),
                         [](const auto& info) { return info.param.name; });

double mean_error(RowFilter filter, std::size_t rounds, bool remembers = true) {
  const PcaOptions options{.components = 1};
  const PowerOptions power{.rounds = rounds, .filter = filter, .narrow = remembers};
  const auto plan = calibrate(plan_power(Adjacency::kReplaceOne, options, power), *Epsilon::of(1), *Delta::of(1e-6));
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::mt19937_64 random(seed);
    Vector direction;
    const RowMajorMatrix rows = gapped_rows(random, 20000, 200, 2, direction);
    auto oracle = oracle_over(rows, 1.5, *plan, seed);
    mean += sin_squared(direction, fit_power(oracle, options, power)->components) / 5;
  }
  return mean;
}

TEST(AdaptivePower, BeatsThePlainPowerMethodInManyColumns) {
  EXPECT_LT(mean_error(RowFilter::kShrink, 6), 0.5);
  EXPECT_GT(mean_error(RowFilter::kOff, 6), 0.8);
}

TEST(AdaptivePower, ForgettingProductsCostsHalfTheAccuracy) {
  const double remembering = mean_error(RowFilter::kShrink, 8);
  EXPECT_LT(remembering, 0.12);
  EXPECT_GT(mean_error(RowFilter::kShrink, 8, false), 1.5 * remembering);
}

// Rows of no direction at all.
TEST(AdaptivePower, SaysThatNoiseIsNoise) {
  for (const std::size_t k : {1U, 3U}) {
    const PcaOptions options{.components = k};
    const auto plan = calibrate(plan_power(Adjacency::kReplaceOne, options, {}), *Epsilon::of(1), *Delta::of(1e-6));
    int called = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::mt19937_64 random(seed);
      const RowMajorMatrix rows = test::normal_matrix(random, 3000, 40) / std::sqrt(40.0);
      auto oracle = oracle_over(rows, 1.5, *plan, seed);
      const auto verdict = fit_power(oracle, options, {})->judge();
      ASSERT_TRUE(verdict.ok());
      called += verdict->judged[0].standing == Standing::kNoise ? 1 : 0;
    }
    EXPECT_GE(called, 9) << k;
  }
}

TEST(SparsePower, FindsTheColumnsThatHaveALoading) {
  const PcaOptions options{.components = 1, .sparsity = 20};
  const PowerOptions power{.rounds = 6};
  const auto plan = calibrate(plan_power(Adjacency::kReplaceOne, options, power), *Epsilon::of(1), *Delta::of(1e-6));
  std::mt19937_64 random(6);
  Vector direction = Vector::Zero(300);
  direction.head(10) = test::normal_matrix(random, 10, 1).cwiseSign() / std::sqrt(10.0);
  RowMajorMatrix rows = test::normal_matrix(random, 20000, 300);
  rows += std::sqrt(10.0) * test::normal_matrix(random, 20000, 1) * direction.transpose();
  auto oracle = oracle_over(rows, 25, *plan, 6);
  const auto fit = fit_power(oracle, options, power);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_EQ((fit->components.array() != 0).count(), 20);
  EXPECT_LT(sin_squared(direction, fit->components), 0.08);
}

TEST(PowerOptions, RefusesWhatCannotBe) {
  const PcaOptions options{.components = 2};
  const RowMajorMatrix rows = RowMajorMatrix::Ones(50, 3);
  const auto refusal = [&](const PcaOptions& pca, const PowerOptions& power) {
    const PrivacyPlan plan = without_noise(plan_power(Adjacency::kReplaceOne, pca, power));
    auto oracle = oracle_over(rows, 1, plan, 1);
    return !fit_power(oracle, pca, power).ok();
  };
  EXPECT_TRUE(refusal({.components = 4}, {}));
  EXPECT_TRUE(refusal(options, {.rounds = 0}));
  EXPECT_TRUE(refusal(options, {.grid_ratio = 1}));
  EXPECT_TRUE(refusal({.components = 2, .sparsity = 1}, {}));
  EXPECT_TRUE(refusal({.components = 2, .sparsity = 4}, {}));
}

}  // namespace
}  // namespace eigenveil
