// SPDX-License-Identifier: Apache-2.0
#include "src/estimators/pca/shortened.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/method.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

// Rows with variances 8, 4 and 1, 1, ..., along the axes.
RowMajorMatrix spiked_rows(Eigen::Index n, Eigen::Index d, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RowMajorMatrix rows = test::normal_matrix(random, n, d);
  rows.col(0) *= std::sqrt(8.0);
  rows.col(1) *= 2;
  return rows;
}

Vector second_moments(const RowMajorMatrix& rows) { return rows.cwiseAbs2().colwise().mean().transpose(); }

RowSpectrum spectrum_of(const Vector& moments) {
  const Eigen::Index others = moments.size() - 2;
  return {moments.head(2), moments.tail(others).mean(), static_cast<double>(others)};
}

TEST(Unshortened, FindsTheSpectrumAgain) {
  for (const Eigen::Index d : {3, 10, 60}) {
    RowMajorMatrix rows = spiked_rows(100000, d, 1);
    const double radius = std::sqrt(static_cast<double>(d) + 5);  // about half of the rows are longer
    for (auto row : rows.rowwise()) row *= std::min(1.0, radius / row.norm());
    const RowSpectrum seen = spectrum_of(second_moments(rows));
    const RowSpectrum found = unshortened(seen, radius);
    EXPECT_LT(seen.top[0], 7);
    EXPECT_NEAR(found.top[0], 8, d == 3 ? 0.8 : 0.4) << d;  // hardly anything is left of three columns
    EXPECT_NEAR(found.top[1], 4, 0.25) << d;
    EXPECT_NEAR(found.rest, 1, 0.05) << d;
  }
}

TEST(Unshortened, FindsTheShapeOfRowsOfOneLength) {
  for (const Eigen::Index d : {3, 10, 60}) {
    RowMajorMatrix rows = spiked_rows(100000, d, 2);
    for (auto row : rows.rowwise()) row.normalize();
    const RowSpectrum found = unshortened(spectrum_of(second_moments(rows)), {});
    EXPECT_NEAR(found.top[0] / found.rest, 8, 0.6) << d;
    EXPECT_NEAR(found.top[1] / found.rest, 4, 0.3) << d;
    EXPECT_NEAR(found.top.sum() + found.rest * found.others, 1, 1e-9);
  }
}

TEST(Unshortened, LeavesRowsThatNobodyShortened) {
  const RowSpectrum whole{Vector::Constant(1, 3.0), 1, 9};
  const RowSpectrum found = unshortened(whole, 1000);
  EXPECT_NEAR(found.top[0], 3, 1e-9);
  EXPECT_NEAR(found.rest, 1, 1e-9);
}

// epsilon 1, delta 1e-6, about a mean that is found.
PcaResult released(PcaMethod method, const RowMajorMatrix& rows, double bound, BoundBy by, std::uint64_t seed) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  PcaProgram program{method, {.components = 2}};
  program.options.preparation = {.mean = MeanBy::kRefined, .bound_by = by, .directions = 2};
  const RowsShape shape{
      static_cast<std::size_t>(rows.cols()), static_cast<std::size_t>(rows.rows()), {bound, 20}, budget.adjacency};
  const auto plan = calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
  auto oracle = test::oracle_over(rows, bound, *plan, seed);
  const auto done = fit(program, oracle);
  EXPECT_TRUE(done.ok() && oracle.complete());
  return done->pca;
}

double missed(const PcaResult& pca) { return 1 - pca.components.topRows(2).squaredNorm() / 2; }

TEST(FoundBound, ValuesAreThoseOfWholeRows) {
  const RowMajorMatrix rows = spiked_rows(30000, 40, 3);
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSphere}) {
    const PcaResult pca = released(method, rows, 200, BoundBy::kDirections, 1);
    EXPECT_NEAR(pca.eigenvalues[0], 8, 1);
    EXPECT_NEAR(pca.eigenvalues[1], 4, 0.5);
    const auto verdict = pca.judge();
    ASSERT_TRUE(verdict.ok());
    EXPECT_LT(verdict->low[0], 8);
    EXPECT_GT(verdict->high[0], 8);
    EXPECT_NEAR(verdict->explained->value, 12.0 / 50, 0.04);
  }
}

// As of a few columns with a category: sexes one apart, all else small. Taken for Gaussian ones, half of which are
// shortened, such rows had been ten times as large.
TEST(FoundBound, RowsThatAreAboutEquallyLongAreNotTakenForGaussian) {
  RowMajorMatrix rows = spiked_rows(2000, 6, 7);
  rows *= 0.1;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) rows(i, 0) = i % 2 ? 0.85 : -0.85;
  const double truth = 0.85 * 0.85;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const PcaResult pca = released(PcaMethod::kGram, rows, 3, BoundBy::kDirections, seed);
    EXPECT_NEAR(pca.eigenvalues[0], truth, 0.3 * truth);
    const auto verdict = pca.judge();
    ASSERT_TRUE(verdict.ok());
    EXPECT_NEAR(verdict->estimate[0], truth, 0.3 * truth);
    EXPECT_LT(verdict->low[0], truth);
    EXPECT_GT(verdict->high[0], truth);
    EXPECT_LT(verdict->high[0], 2 * truth);
  }
}

TEST(Unshortened, StaysBetweenWhatIsSeenAndWhatLimitsLet) {
  const RowSpectrum seen{Vector::Constant(2, 0.4), 0.01, 4};
  const RowSpectrum free = unshortened(seen, 1.0);
  EXPECT_GT(free.top[0], 2 * seen.top[0]);
  EXPECT_FALSE(free.limited);
  // No row is longer than 1.1 but for one in a hundred.
  const RowSpectrum limited = unshortened(seen, 1.0, {{1.1, 0.01}});
  EXPECT_TRUE(limited.limited);
  EXPECT_GE(limited.top.minCoeff(), seen.top[0]);
  EXPECT_GE(limited.rest, seen.rest);
  EXPECT_LT(limited.top[0], 1.1 * seen.top[0]);
  // A limit that the rows keep says nothing.
  const RowSpectrum kept = unshortened(seen, 1.0, {{1.0, 0.999}, {100.0, 0.1}});
  EXPECT_EQ(kept.top, free.top);
  // Nothing stands out: all have one eigenvalue.
  const RowSpectrum flat = unshortened({Vector(0), 0.15, 6}, 1.0);
  EXPECT_GT(flat.rest, 0.15);
}

TEST(Unshortened, SaysWhereNothingTellsHowLongRowsWere) {
  // Of rows that are all longer than 1 the squares sum up to 1.
  const RowSpectrum all{Vector::Constant(2, 0.3), 0.0995, 4}, half{Vector::Constant(2, 0.3), 0.02, 4};
  EXPECT_TRUE(unshortened(all, 1.0).open);
  EXPECT_FALSE(unshortened(half, 1.0).open);
  // A search that saw few of them beyond a length tells.
  EXPECT_FALSE(unshortened(all, 1.0, {{1.3, 0.1}}).open);
}

// Where a limit begins to bind, next to nothing changes.
TEST(Unshortened, GoesFromFreeToLimitedWithoutAJump) {
  const RowSpectrum seen{Vector::Constant(2, 0.3), 0.02, 4};
  const RowSpectrum free = unshortened(seen, 1.0);
  const double longer = 0.2, reached = std::sqrt(squared_length(free, longer));
  const RowSpectrum limited = unshortened(seen, 1.0, {{0.999 * reached, longer}});
  EXPECT_TRUE(limited.limited);
  EXPECT_NEAR(limited.top[0] / free.top[0], 1, 0.01);
}

// Of few rows the searches err by many: how long rows are is then hardly known, and bands must say so.
TEST(FoundBound, BandsOfFewRowsHoldTheTruth) {
  int bands = 0, held = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const auto verdict = released(PcaMethod::kGram, spiked_rows(700, 12, seed), 60, BoundBy::kDirections, seed).judge();
    ASSERT_TRUE(verdict.ok());
    if (verdict->judged[0].standing == Standing::kNoise) continue;
    ++bands;
    held += verdict->low[0] <= 8 && 8 <= verdict->high[0] ? 1 : 0;
  }
  EXPECT_GT(bands, 20);
  EXPECT_GE(held, 0.9 * bands);
}

TEST(FoundBound, RangesThatAreTenTimesTooWideCostNextToNothing) {
  const RowMajorMatrix rows = spiked_rows(20000, 40, 4);
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSphere, PcaMethod::kAdaptivePower}) {
    double narrow = 0, wide = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      narrow += missed(released(method, rows, 20, BoundBy::kDirections, seed));
      wide += missed(released(method, rows, 200, BoundBy::kDirections, seed));
    }
    EXPECT_LT(wide, 1.5 * narrow);
    EXPECT_LT(narrow / 4, 0.01);
  }
  EXPECT_GT(missed(released(PcaMethod::kGram, rows, 200, BoundBy::kStated, 1)), 0.3);
}

TEST(Sphere, DoesNotMindLongTails) {
  RowMajorMatrix rows = spiked_rows(20000, 40, 5);
  std::mt19937_64 random(5);
  std::chi_squared_distribution<double> chi(2);
  for (auto row : rows.rowwise()) row *= std::sqrt(2 / chi(random));  // t with two degrees: no variance at all
  EXPECT_LT(missed(released(PcaMethod::kSphere, rows, 500, BoundBy::kDirections, 1)), 0.005);
  EXPECT_GT(missed(released(PcaMethod::kGram, rows, 500, BoundBy::kStated, 1)), 0.3);
}

TEST(ShareAbove, FollowsTheNoise) {
  for (const BoundBy by : {BoundBy::kDirections, BoundBy::kMoments}) {
    double last = 1;
    for (const double n_mu : {10.0, 1e3, 1e4, 1e5, 1e6}) {
      const double share = share_above(by, 3, 50, n_mu);
      EXPECT_LE(share, std::min(0.5, last));
      EXPECT_GT(share, 0);
      last = share;
    }
    EXPECT_LT(last, 1e-4);
    EXPECT_EQ(share_above(by, 3, 50, 10), 0.5);
    EXPECT_EQ(share_above(by, 3, 50, 0), 0.5);
  }
}

// Of few rows noise may leave no eigenvalue above zero: there is nothing to make whole, and nothing to divide by.
TEST(Unshortened, HasAVerdictWhereNoiseLeftNothingAboveZero) {
  Preparation prepared{5, Vector::Zero(40), 0.03, true};
  prepared.found = FoundLength{0.1, 0.5, 0.4};
  ReleasedCovariance released{-Matrix::Identity(40, 40), prepared, 0.02};
  released.covariance(0, 0) = -0.1;  // stands out of the others, and is nothing
  const auto fitted = components_of(released, {.components = 1}, 0.1);
  ASSERT_TRUE(fitted.ok());
  EXPECT_TRUE(fitted->eigenvalues.allFinite());
  const auto verdict = fitted->judge();
  ASSERT_TRUE(verdict.ok());
  for (const Vector* one : {&verdict->estimate, &verdict->low, &verdict->high, &verdict->share_high})
    EXPECT_TRUE(one->allFinite()) << one->transpose();
}

}  // namespace
}  // namespace eigenveil
