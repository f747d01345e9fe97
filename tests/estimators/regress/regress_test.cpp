// SPDX-License-Identifier: Apache-2.0
// Linear regression from one noisy Gram: what it computes, what it states of its noise, what it refuses.
#include "eigenveil/estimators/regress/regress.hpp"

#include <gmock/gmock.h>

#include "eigenveil/linalg/decompositions.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using testing::HasSubstr;

constexpr Eigen::Index kColumns = 3;

/// Columns between 0 and 10, and a target that is -4 + 0.5 x1 - x3 + noise, between -20 and 12.
struct Table {
  Matrix x;
  Vector y;

  explicit Table(Eigen::Index rows, int seed, double noise = 1) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::uniform_real_distribution<double> even(0, 10);
    x = Matrix::NullaryExpr(rows, kColumns, [&] { return even(random); });
    y = (-4 + 0.5 * x.col(0).array() - x.col(2).array()).matrix() + noise * test::normal_matrix(random, rows, 1);
  }
  Vector least_squares() const {
    Matrix X(x.rows(), kColumns + 1);
    X << Vector::Ones(x.rows()), x;
    return eigenveil::least_squares(X, y);
  }
};

/// A row is ((x - 5) / 5, w (y + 4) / 16, c) with the shares of regress.proof.md for the corner of the ranges.
RegressOptions options_for_table() {
  const double A = kColumns + 1;
  RegressOptions options{1, Vector(kColumns + 1), Vector(kColumns + 1), {"a", "b", "c", "y"}, {}};
  options.offset << 5, 5, 5, -4;
  options.scale << 0.2, 0.2, 0.2, std::sqrt(A / 2) / 16;
  return options;
}

RowMajorMatrix features_of(const Table& table, const RegressOptions& options) {
  RowMajorMatrix rows(table.x.rows(), kColumns + 2);
  rows << table.x, table.y, Vector::Constant(table.x.rows(), options.constant);
  for (Eigen::Index j = 0; j <= kColumns; ++j)
    rows.col(j) = ((rows.col(j).array() - options.offset[j]) * options.scale[j]).matrix();
  return rows;
}

const double kCorner = std::sqrt(1.5 * (kColumns + 1));
const Budget kBudget{*Epsilon::of(1), *Delta::of(1e-6)};

Budget with(Adjacency adjacency) {
  Budget budget = kBudget;
  budget.adjacency = adjacency;
  return budget;
}

/// A fit with hardly any noise, or with that of a budget.
Fit fit(const RegressOptions& options, const RowMajorMatrix& rows, double radius, const Budget& budget, bool noisy,
        std::uint64_t seed = 1) {
  const auto regress = estimator(options);
  const PrivacyPlan shape = *regress->plan({4, {}, {1, 20}, budget.adjacency}, budget);
  const PrivacyPlan plan = noisy ? *calibrate(shape, budget.epsilon, budget.delta) : test::without_noise(shape);
  LocalOracle oracle = test::oracle_over(rows, radius, plan, seed);
  auto found = regress->fit(oracle, budget);
  EXPECT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(oracle.complete());
  return *std::move(found);
}

const Matrix& array(const Fit& fit, const std::string& name) {
  for (const NamedArray& one : fit.arrays)
    if (one.name == name) return one.values;
  throw std::runtime_error("no array " + name);
}

TEST(Regress, WithHardlyAnyNoiseIsLeastSquares) {
  const Table table(4000, 1);
  const Vector truth = table.least_squares();
  const RegressOptions options = options_for_table();
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const Fit found = fit(options, features_of(table, options), kCorner, with(adjacency), false);
    const Matrix slopes = array(found, "coefficients");
    // Shrinkage for sampling errors remains: a thousandth of a slope.
    EXPECT_NEAR(slopes(0, 0), truth[1], 2e-3);
    EXPECT_NEAR(slopes(1, 0), truth[2], 2e-3);
    EXPECT_NEAR(slopes(2, 0), truth[3], 2e-3);
    EXPECT_NEAR(array(found, "intercept")(0, 0), truth[0], 1e-2);
    EXPECT_EQ(*found.rows, 4000);
    // The intervals are those of least squares: +-1.96 sqrt(s^2 (X'X)^-1), s^2 with n instead of n - p.
    const auto& slope = found.facts["coefficients"][1];
    const double width = 2 * 1.96 * std::sqrt(1.0 / (4000 * 100.0 / 12));
    EXPECT_NEAR(slope["upper"].get<double>() - slope["lower"].get<double>(), width, 0.05 * width);
    EXPECT_NEAR((slope["upper"].get<double>() + slope["lower"].get<double>()) / 2, truth[1], 1e-4);
    const Vector residuals =
        table.y - (table.x * truth.tail(kColumns)).eval() - Vector::Constant(table.y.size(), truth[0]);
    EXPECT_NEAR(found.facts["residual_variance"]["value"], residuals.squaredNorm() / (4000 - 4), 1e-3);
    const double total = (table.y.array() - table.y.mean()).square().sum();
    EXPECT_NEAR(found.facts["r_squared"]["value"], 1 - residuals.squaredNorm() / total, 1e-3);
  }
}

TEST(Regress, ARidgeOfNothingIsLeastSquaresExactly) {
  const Table table(1000, 2);
  RegressOptions options = options_for_table();
  options.ridge = 0;
  const Fit found = fit(options, features_of(table, options), kCorner, kBudget, false);
  const Vector truth = table.least_squares();
  EXPECT_LT((array(found, "coefficients").reshaped() - truth.tail(kColumns)).norm(), 1e-4);
  EXPECT_NEAR(array(found, "intercept")(0, 0), truth[0], 1e-3);
  options.ridge = 100;
  const Fit flat = fit(options, features_of(table, options), kCorner, kBudget, false);
  EXPECT_LT(array(flat, "coefficients").norm(), 0.01);
}

// A row that is shortened keeps its equation only if its constant is shortened with it, and counted as it is.
TEST(Regress, ShortenedRowsKeepTheirEquation) {
  const Table table(4000, 3, 1e-3);
  RegressOptions options = options_for_table();
  options.whole = false;
  options.ridge = 0;
  const Fit found = fit(options, features_of(table, options), 0.6 * kCorner, kBudget, false);
  const Matrix slopes = array(found, "coefficients");
  EXPECT_NEAR(slopes(0, 0), 0.5, 1e-3);
  EXPECT_NEAR(slopes(2, 0), -1, 1e-3);
  EXPECT_NEAR(array(found, "intercept")(0, 0), -4, 5e-3);
  EXPECT_THAT(found.warnings.back(), HasSubstr("shortened"));
}

TEST(Regress, RowsThatCountAsZeroAreNotCountedByTheConstant) {
  const Table table(3000, 4, 1e-3);
  RegressOptions options = options_for_table();
  RowMajorMatrix rows = features_of(table, options);
  rows.topRows(1000).setZero();
  options.complete = false;
  options.ridge = 0;
  const Fit found = fit(options, rows, kCorner, kBudget, false);
  EXPECT_NEAR(array(found, "intercept")(0, 0), -4, 5e-3);
  EXPECT_EQ(*found.rows, 3000) << "the number of rows is public and stays";
}

TEST(Regress, StatesTheNoiseOfItsPlan) {
  const Table table(500, 5);
  const RegressOptions options = options_for_table();
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const Budget budget = with(adjacency);
    const auto plan =
        *calibrate(*estimator(options)->plan({4, {}, {1, 20}, budget.adjacency}, budget), budget.epsilon, budget.delta);
    ASSERT_EQ(plan.events.size(), 1U) << "one answer, whatever the neighbours";
    const double mu = test::mu_of(plan.events[0]).value();
    // One row moves the Gram by sqrt 2 B^2 (replaced) or B^2 (added), and an entry off the diagonal counts twice.
    const double deviation = kCorner * kCorner / mu / (adjacency == Adjacency::kReplaceOne ? 1 : std::sqrt(2));
    const Fit found = fit(options, features_of(table, options), kCorner, budget, true);
    EXPECT_NEAR(found.facts["noise_edge"].get<double>(), 2 * deviation * std::sqrt(kColumns + 1.0), 1e-3 * deviation);
  }
}

TEST(Regress, DrownedInNoiseThereIsNoIntervalAndThatIsSaid) {
  const Table table(100, 6);
  const RegressOptions options = options_for_table();
  const Fit found = fit(options, features_of(table, options), kCorner, kBudget, true);
  for (const auto& one : found.facts["coefficients"]) {
    EXPECT_TRUE(one["lower"].is_null());
    EXPECT_TRUE(one["upper"].is_null());
    EXPECT_TRUE(std::isfinite(one["value"].get<double>()));
  }
  EXPECT_TRUE(found.facts["residual_variance"]["value"].is_null());
  EXPECT_TRUE(found.facts["r_squared"]["value"].is_null());
  EXPECT_THAT(found.warnings.front(), HasSubstr("not determined"));
}

TEST(Regress, LeavesTheFirstCategoryOut) {
  Table table(4000, 7);
  // Columns b and c are the two values of a category.
  table.x.col(1) = (table.x.col(1).array() > 5).cast<double>() * 10;
  table.x.col(2) = (10 - table.x.col(1).array()).matrix();
  table.y = table.x.col(0) + 0.3 * table.x.col(2);
  RegressOptions options = options_for_table();
  options.baselines = {1};
  const Fit found = fit(options, features_of(table, options), kCorner, kBudget, false);
  const Matrix slopes = array(found, "coefficients");
  EXPECT_NEAR(slopes(0, 0), 1, 1e-3);
  EXPECT_EQ(slopes(1, 0), 0);
  EXPECT_NEAR(slopes(2, 0), 0.3, 1e-3);
  EXPECT_EQ(found.facts["coefficients"].size(), 3U);
  EXPECT_THAT(found.warnings.back(), HasSubstr("compared with the first of their column: b"));
}

TEST(Regress, LeavesACategoryOutThatNobodyHas) {
  Table table(4000, 7);
  table.x.col(1).setZero();  // nobody
  table.y = table.x.col(0) + 0.3 * table.x.col(2);
  RegressOptions options = options_for_table();
  options.categories = {1};
  const Fit found = fit(options, features_of(table, options), kCorner, kBudget, false);
  EXPECT_EQ(array(found, "coefficients")(1, 0), 0);
  EXPECT_NEAR(array(found, "coefficients")(0, 0), 1, 1e-3);
  EXPECT_TRUE(found.facts["coefficients"][1]["lower"].is_number());
  EXPECT_THAT(found.warnings.back(), HasSubstr("hides whether anybody is in these categories"));
  // One that people have stays.
  table.x.col(1) = (table.x.col(0).array() > 7).cast<double>() * 10;
  const Fit kept = fit(options, features_of(table, options), kCorner, kBudget, false);
  EXPECT_NE(array(kept, "coefficients")(1, 0), 0);
}

TEST(Regress, RefusesBeforeItAsks) {
  RegressOptions options = options_for_table();
  const RowsShape shape{kColumns + 2, 100, {kCorner, 20}, Adjacency::kReplaceOne};
  EXPECT_TRUE(estimator(options)->check(shape, kBudget).ok());
  EXPECT_FALSE(estimator(options)->check({kColumns + 1, 100, {kCorner, 20}, Adjacency::kReplaceOne}, kBudget).ok());
  options.ridge = -1;
  EXPECT_FALSE(estimator(options)->check(shape, kBudget).ok());
}

TEST(Regress, FromMomentsAboutAMeanIsLeastSquares) {
  Table table(4000, 8);
  table.x = (table.x.array() * 0.6 + 4).matrix();  // the mean is not in the middle of the range
  RegressOptions options = options_for_table();
  const RowMajorMatrix rows = features_of(table, options).leftCols(kColumns + 1);
  const Vector mean = rows.colwise().mean();
  const Matrix centred = rows.rowwise() - mean.transpose();
  const ReleasedMoments moments{centred.transpose() * centred / 4000, 1e-9, 4000, {mean, 1e-9}};
  const auto found = fit_from(moments, options, kColumns);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const Vector truth = table.least_squares();
  EXPECT_LT((array(*found, "coefficients").reshaped() - truth.tail(kColumns)).norm(), 5e-3);
  EXPECT_NEAR(array(*found, "intercept")(0, 0), truth[0], 0.02);
  // Any column may be the target: the first one, explained by the others.
  const auto other = fit_from(moments, options, 0);
  ASSERT_TRUE(other.ok());
  Matrix X(4000, 4);
  X << Vector::Ones(4000), table.x.rightCols(2), table.y;
  const Vector slopes = least_squares(X, table.x.col(0));
  EXPECT_LT((array(*other, "coefficients").reshaped() - slopes.tail(3)).norm(), 5e-3);
  EXPECT_EQ(other->facts["target"], "a");
}

// Reference values of an independent implementation, which bisects: a release whose noise is half of what it can stand.
TEST(Regress, IntervalsInvertTheProfile) {
  NoisyMoments moments{Matrix(5, 5), 67.48305344768193, 2000, 1, true};
  moments.M << 2000.0, -86.301, -64.532, -4.299, 173.27, -86.301, 740.151, -40.409, 26.596, 67.628, -64.532, -40.409,
      680.348, 69.846, -95.291, -4.299, 26.596, 69.846, 601.786, 173.596, 173.27, 67.628, -95.291, 173.596, 92.942;
  const RegressUnits units{Vector::Zero(3), Vector::Ones(3), 0, 0.1868058866109798};
  const auto found = regression(moments, units, {});
  ASSERT_TRUE(found.ok());
  const double lower[] = {0.071474239, -0.6296038, -2.1760056, 0.39870364};
  const double upper[] = {0.84441195, 1.5363209, 0.27364062, 3.2525251};
  const double shrunk[] = {0.40128194, 0.38231551, -0.49554584, 0.93101144};
  for (std::size_t k = 0; k < 4; ++k) {
    const Estimated& one = k == 0 ? found->intercept : found->slopes[k - 1];
    ASSERT_TRUE(one.interval);
    EXPECT_NEAR(one.interval->lower, lower[k], 1e-3);
    EXPECT_NEAR(one.interval->upper, upper[k], 1e-3);
    EXPECT_NEAR(one.value, shrunk[k], 1e-7);
  }
  EXPECT_NEAR(found->residual_variance->value, 0.45548387, 1e-7);
}

}  // namespace
}  // namespace eigenveil
