// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/preparation.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::bound_matrix;
using test::normal_matrix;
using test::without_noise;

/// Gaussian rows, three directions of variance 5 and the others of 1, about a mean of `offset` deviations per column.
struct Cell {
  Eigen::Index n;
  Eigen::Index d;
  double offset;
  bool private_bound = false;

  double reach() const { return 1.2 * std::sqrt(static_cast<double>(d) + 12); }
  /// What public ranges would allow.
  double length() const { return reach() + offset * std::sqrt(static_cast<double>(d)); }
};

struct Drawn {
  RowMajorMatrix rows;
  Matrix top;
  Vector mean;
};

Drawn draw(const Cell& cell, std::mt19937_64& random) {
  const Matrix turn = orthonormal(normal_matrix(random, cell.d, cell.d));
  RowMajorMatrix rows = normal_matrix(random, cell.n, cell.d);
  rows.leftCols(3) *= std::sqrt(5.0);
  Drawn drawn{rows * turn.transpose(), turn.leftCols(3), Vector(cell.d)};
  for (Eigen::Index j = 0; j < cell.d; ++j) drawn.mean[j] = random() % 2 == 0 ? cell.offset : -cell.offset;
  drawn.rows.rowwise() += drawn.mean.transpose();
  return drawn;
}

/// sin^2 of the three top directions, over releases at epsilon 1, delta 1e-6.
double error_of(const Cell& cell, MeanBy by, int releases) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  PcaProgram program{PcaMethod::kGram, {.components = 3}};
  program.options.preparation = {.mean = by};
  if (cell.private_bound)
    program.options.preparation.bound_by = BoundBy::kDirections;
  else
    program.options.preparation.bound = *RowBound::of(cell.reach());
  const RowsShape shape{
      static_cast<std::size_t>(cell.d), static_cast<std::size_t>(cell.n), {cell.length(), 20}, budget.adjacency};
  const auto plan = calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
  double sum = 0;
  for (int release = 0; release < releases; ++release) {
    const auto seed = static_cast<std::uint64_t>(release) + 1;
    std::mt19937_64 random(seed);
    const Drawn drawn = draw(cell, random);
    LocalOracle oracle(bound_matrix(drawn.rows, cell.length()), reserve_without_ledger(*plan),
                       SecureRandom::insecure(seed));
    const auto fit = fit_gram(oracle, program.options);
    EXPECT_TRUE(fit.ok() && oracle.complete());
    sum += 1 - (drawn.top.transpose() * fit->components).squaredNorm() / 3;
  }
  return sum / releases;
}

// The table of docs/centring.md.
TEST(BoundForTail, LiesBetweenATypicalLengthAndTheFarOne) {
  // R = typical (b / a')^c and a' = a (R / typical)^4, for far = 3 typical: c = log 3 / log 25
  const double R = bound_for_tail(0.01, 3, 0.25, 1), c = std::log(3.0) / std::log(25.0);
  EXPECT_NEAR(R, std::pow(0.25 / (0.01 * std::pow(R, 4)), c), 1e-9);
  for (const double a : {1e-9, 0.1, 0.2499, 0.25 * (1 - 1e-6), 0.25 * (1 - 1e-14)}) {
    EXPECT_GE(bound_for_tail(a, 3, 0.25, 1), 1) << a;
    EXPECT_LE(bound_for_tail(a, 3, 0.25, 1), 3) << a;
  }
  EXPECT_EQ(bound_for_tail(0.25, 3, 0.25, 1), 1);
}

TEST(RefinedMean, CostsLittleMoreThanKnowingTheMean) {
  EXPECT_LT(error_of({2000, 10, 10}, MeanBy::kRefined, 5), 0.04);
  EXPECT_LT(error_of({2000, 50, 0}, MeanBy::kRefined, 5), 0.35);
  EXPECT_LT(error_of({300, 10, 0}, MeanBy::kRefined, 5), 0.6);
}

TEST(RefinedMean, IsWorthItsSecondSumWhereRangesAreWide) {
  for (const bool private_bound : {false, true}) {
    const Cell cell{2000, 50, 10, private_bound};
    const double refined = error_of(cell, MeanBy::kRefined, 4);
    EXPECT_LT(refined, 0.45);
    EXPECT_GT(error_of(cell, MeanBy::kOnce, 4), 1.5 * refined);
  }
}

TEST(RefinedMean, HasTheErrorThatItStates) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  for (const double bound : {3.0, 20.0}) {  // two sums; one
    PreparationOptions options{.mean = MeanBy::kRefined, .bound = *RowBound::of(bound)};
    const RowsShape shape{40, 4000, {20, 20}, budget.adjacency};
    options = with_shares(options, shape, budget);
    EXPECT_EQ(options.shares.refined > 0, bound < 10);
    PrivacyPlan plan(budget.adjacency, plan_preparation(budget.adjacency, options, 1));
    plan.events.push_back({kCovarianceLabel, GaussianEvent{1}});
    plan = *calibrate(plan, budget.epsilon, budget.delta);
    double squares = 0;
    double stated = 0;
    constexpr int kReleases = 20;
    for (int release = 0; release < kReleases; ++release) {
      std::mt19937_64 random(static_cast<std::uint64_t>(release) + 1);
      RowMajorMatrix rows = 0.1 * normal_matrix(random, 4000, 40);
      rows.array() += 1;
      const Vector mean = rows.colwise().mean();
      LocalOracle oracle(bound_matrix(rows, 20), reserve_without_ledger(plan),
                         SecureRandom::insecure(static_cast<std::uint64_t>(release) + 1));
      const auto prepared = prepare(oracle, options);
      ASSERT_TRUE(prepared.ok());
      EXPECT_EQ(oracle.shape().lattice.radius, bound);
      squares += (prepared->mean - mean).squaredNorm() / (40 * kReleases);
      stated = prepared->mean_deviation;
    }
    // 800 squares of normal numbers: five deviations are a quarter
    EXPECT_NEAR(squares / (stated * stated), 1, 0.25) << bound;
  }
}

TEST(RefinedMean, TakesItsOwnErrorOutOfEigenvalues) {
  std::mt19937_64 random(1);
  const RowMajorMatrix rows = normal_matrix(random, 3000, 20);
  PcaOptions options{.components = 20};
  options.preparation.mean = MeanBy::kRefined;
  PrivacyPlan plan = without_noise(plan_gram(Adjacency::kReplaceOne, options));
  // Noise in the mean alone: tau = 2 B / (mu n) = 0.5
  plan.events[0].mechanism = GaussianEvent{2.0 * 60 / (0.5 * 3000)};
  plan.events.erase(plan.events.begin() + 1);
  double trace = 0;
  double first = 0;
  double line = 0;
  constexpr int kReleases = 8;
  for (int release = 1; release <= kReleases; ++release) {
    LocalOracle oracle(bound_matrix(rows, 60), reserve_without_ledger(plan),
                       SecureRandom::insecure(static_cast<std::uint64_t>(release)));
    const auto fit = fit_gram(oracle, options);
    ASSERT_TRUE(fit.ok());
    EXPECT_NEAR(fit->mean_deviation, 0.5, 0.01);
    trace += fit->eigenvalues.sum() / kReleases;
    first += fit->eigenvalues[0] / kReleases;
    line = fit->noise_edge;
  }
  // tr(G / n) = 20 (1 + tau^2), give or take 0.6; without the correction it would be 25
  EXPECT_NEAR(trace, 20, 2.5);
  EXPECT_GT(first, 3) << "the mean's error is a direction of its own";
  EXPECT_GT(line, first - 1) << "and the line must count it";
}

// Of 60 rows at epsilon 0.1 searches tell nothing: three of them in turn made rows 2^-30 as long as they were, whose
// second moments were then less than nothing once the error of the mean was taken off.
TEST(FoundBound, IsNoShorterThanTheErrorOfTheMean) {
  const Budget budget{*Epsilon::of(0.1), *Delta::of(1e-6)};
  const PreparationOptions options{.mean = MeanBy::kRefined, .bound_by = BoundBy::kMoments};
  const RowsShape shape{40, 60, {10, 20}, budget.adjacency};
  PcaProgram program{PcaMethod::kGram, {.components = 1, .preparation = options}};
  const auto plan = calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
  std::mt19937_64 random(1);
  const RowMajorMatrix rows = normal_matrix(random, 60, 40);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    LocalOracle oracle(bound_matrix(rows, 10), reserve_without_ledger(*plan), SecureRandom::insecure(seed));
    const auto prepared = prepare(oracle, options);
    ASSERT_TRUE(prepared.ok());
    EXPECT_GE(oracle.shape().lattice.radius, 0.25 * prepared->mean_deviation * std::sqrt(40.0)) << seed;
  }
}

TEST(RefinedMean, SharesFollowWhatIsPublicAlone) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  PreparationOptions options{.mean = MeanBy::kRefined, .bound = *RowBound::of(1)};
  const auto shares = [&](std::optional<std::size_t> rows, double radius, std::size_t d) {
    const Adjacency adjacency = rows ? Adjacency::kReplaceOne : Adjacency::kAddRemoveOne;
    return with_shares(options, {d, rows, {radius, 20}, adjacency}, budget).shares;
  };
  EXPECT_GT(shares(2000, 10, 50).refined, shares(200000, 10, 50).refined) << "many rows need a smaller share";
  EXPECT_EQ(shares(2000, 1, 50).refined, 0) << "nothing to gain: one sum";
  EXPECT_EQ(shares({}, 1, 50).refined, 0);
  EXPECT_GT(shares({}, 10, 50).refined, 0);
  for (const std::size_t rows : {1U, 30U, 1000U, 1000000U})
    for (const std::size_t d : {1U, 100U, 20000U})
      for (const double radius : {1.0, 3.0, 1000.0}) {
        const MeanShares found = shares(rows, radius, d);
        EXPECT_GE(found.rough, 0.005);
        EXPECT_LE(found.rough + found.refined, 0.5);
      }
  options.mean = MeanBy::kNone;
  EXPECT_TRUE(plan_preparation(Adjacency::kReplaceOne, options, 1).empty());
}

TEST(RefinedMean, AsksForEverythingThatItPlansAndNoMore) {
  const Budget one{*Epsilon::of(1), *Delta::of(1e-6)};
  std::mt19937_64 random(5);
  const RowMajorMatrix rows = normal_matrix(random, 500, 6);
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne})
    for (const bool private_bound : {false, true})
      for (const double bound : {0.0, 2.0, 9.0}) {
        Budget budget = one;
        budget.adjacency = adjacency;
        PcaProgram program{PcaMethod::kGram, {.components = 2}};
        auto& preparation = program.options.preparation = {.mean = MeanBy::kRefined};
        preparation.bound_by = private_bound ? BoundBy::kDirections : BoundBy::kStated;
        if (bound > 0) preparation.bound = *RowBound::of(bound);
        RowsShape shape{6, {}, {10, 20}, adjacency};
        if (adjacency == Adjacency::kReplaceOne) shape.rows = 500;
        const auto plan = calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
        ASSERT_TRUE(plan.ok());
        EXPECT_LE(*epsilon_of(plan->events, budget.delta), 1);
        auto oracle = test::oracle_over(rows, 10, *plan, 1);
        const auto fit = fit_gram(oracle, program.options);
        ASSERT_TRUE(fit.ok()) << fit.error().message;
        EXPECT_TRUE(oracle.complete());
        EXPECT_GT(fit->mean_deviation, 0);
        if (bound > 0) {
          EXPECT_LE(oracle.shape().lattice.radius, bound * (1 + 1e-12));
        }
      }
}

TEST(NoiseEdge, IsWignersWithoutAMeanAndCountsItsErrorWithOne) {
  EXPECT_DOUBLE_EQ(noise_edge(0.1, 0, 25), 1);
  EXPECT_DOUBLE_EQ(noise_edge(0.1, 0.01, 25), 1) << "far below the noise";
  // theta = tau^2 (sqrt d + 1.2)^2 = 9.61 for tau = 0.5
  EXPECT_NEAR(noise_edge(0.1, 0.5, 25), 9.61 + 0.25 / 9.61 + 0.23, 1e-9);
}

}  // namespace
}  // namespace eigenveil
