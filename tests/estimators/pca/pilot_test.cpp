// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/pilot.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/pca/method.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

// Rows with `k` directions of variance `gap` and the others of 1, along the axes.
RowMajorMatrix spiked_rows(Eigen::Index n, Eigen::Index d, Eigen::Index k, double gap, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RowMajorMatrix rows = test::normal_matrix(random, n, d);
  rows.leftCols(k) *= std::sqrt(gap);
  return rows;
}

struct Released {
  PcaResult pca;
  double missed;  // of the k axes, by the components
};

// epsilon 1, delta 1e-6, about a mean and below a bound that are found.
Released released(PcaMethod method, const RowMajorMatrix& rows, std::size_t k, std::uint64_t seed,
                  BoundBy by = BoundBy::kDirections) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  PcaProgram program{method, {.components = k}};
  program.options.preparation = {.mean = MeanBy::kRefined, .bound_by = by, .directions = k};
  const double bound = 3 * std::sqrt(static_cast<double>(rows.cols()));
  const RowsShape shape{
      static_cast<std::size_t>(rows.cols()), static_cast<std::size_t>(rows.rows()), {bound, 20}, budget.adjacency};
  const auto plan = calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
  auto oracle = test::oracle_over(rows, bound, *plan, seed);
  auto done = fit(program, oracle);
  EXPECT_TRUE(done.ok());
  EXPECT_TRUE(oracle.complete());
  const auto top = static_cast<Eigen::Index>(k);
  const double kept = done->pca.components.topRows(top).squaredNorm() / static_cast<double>(top);
  return {std::move(done->pca), 1 - kept};
}

// 15 of 24 parts of the variance in five directions: the matrix.
TEST(Pilot, SpendsTheRestOnTheMatrixWhereDirectionsAreLarge) {
  double pilot = 0, gram = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const RowMajorMatrix rows = spiked_rows(20000, 60, 5, 18, seed);
    const Released found = released(PcaMethod::kPilot, rows, 5, seed);
    EXPECT_EQ(found.pca.after_pilot->chosen, PcaMethod::kGram);
    EXPECT_TRUE(found.pca.judge) << "a verdict, as gram has one";
    EXPECT_NEAR(found.pca.eigenvalues[0], 18, 2);
    pilot += found.missed;
    gram += released(PcaMethod::kGram, rows, 5, seed).missed;
  }
  EXPECT_LT(pilot, 1.35 * gram) << "a twentieth for searches that nobody made, and no more";
}

// The same directions of a tenth of the rows: noise would cost some of them, and rows of one length have less of it.
TEST(Pilot, SpendsTheRestOnTheSphereWhereNoiseCostsSomething) {
  double pilot = 0, gram = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    RowMajorMatrix rows = spiked_rows(2000, 60, 5, 18, seed);
    std::mt19937_64 random(seed);
    std::chi_squared_distribution<double> tail(3);
    for (auto row : rows.rowwise()) row *= std::sqrt(3 / tail(random));
    const Released found = released(PcaMethod::kPilot, rows, 5, seed);
    EXPECT_EQ(found.pca.after_pilot->chosen, PcaMethod::kSphere);
    EXPECT_TRUE(found.pca.length.has_value());
    EXPECT_TRUE(found.pca.judge()) << "a verdict, as the sphere has one";
    pilot += found.missed;
    gram += released(PcaMethod::kGram, rows, 5, seed).missed;
  }
  EXPECT_LT(pilot, 0.9 * gram);
}

// Nobody looked for how long rows are: there is no length to make them of.
TEST(Pilot, MakesNoRowsOfOneLengthBelowAStatedBound) {
  const RowMajorMatrix rows = spiked_rows(2000, 60, 5, 18, 1);
  const Released found = released(PcaMethod::kPilot, rows, 5, 1, BoundBy::kStated);
  EXPECT_EQ(found.pca.after_pilot->chosen, PcaMethod::kGram);
  EXPECT_FALSE(found.pca.length.has_value());
}

// Of 300 directions one, with 5 of 304 parts of the variance: products.
TEST(Pilot, SpendsTheRestOnProductsWhereDirectionsAreSmall) {
  const RowMajorMatrix rows = spiked_rows(20000, 300, 1, 5, 7);
  const Released found = released(PcaMethod::kPilot, rows, 1, 1);
  EXPECT_EQ(found.pca.after_pilot->chosen, PcaMethod::kAdaptivePower);
  const auto verdict = found.pca.judge();
  ASSERT_TRUE(verdict.ok());
  EXPECT_LT(verdict->share_low[0], 5.0 / 304);
  EXPECT_GT(verdict->share_high[0], 4.5 / 304);
  EXPECT_LT(verdict->share_high[0], 0.06) << "noise of the pilot's diagonal, and no more";
  EXPECT_LT(found.missed, 0.5 * released(PcaMethod::kGram, rows, 1, 1).missed);
}

TEST(Pilot, IsNotWorthItForFewColumns) {
  EXPECT_FALSE(worth_a_pilot(2, 6));
  EXPECT_FALSE(worth_a_pilot(5, 44));
  EXPECT_TRUE(worth_a_pilot(5, 45));
  EXPECT_TRUE(worth_a_pilot(1, 300));
}

TEST(Pilot, NeedsAFilter) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  PcaProgram program{PcaMethod::kPilot, {.components = 1}};
  EXPECT_TRUE(check(program, 100, budget).ok());
  program.power.filter = RowFilter::kOff;
  EXPECT_FALSE(check(program, 100, budget).ok());
}

}  // namespace
}  // namespace eigenveil
