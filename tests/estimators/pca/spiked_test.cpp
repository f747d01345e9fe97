// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/spiked.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::oracle_over;
using test::sin_squared;
using test::without_noise;

// Rows of U diag(spikes) U^T + I
RowMajorMatrix spiked_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index p, const Vector& spikes, Matrix& U) {
  U = orthonormal(test::normal_matrix(random, p, spikes.size()));
  RowMajorMatrix rows = test::normal_matrix(random, n, p);
  rows += test::normal_matrix(random, n, spikes.size()) * spikes.cwiseSqrt().asDiagonal() * U.transpose();
  return rows;
}

struct Setting {
  const char* name;
  Guarantee guarantee;
  Subspace subspace;
};

class Spiked : public ::testing::TestWithParam<Setting> {
 protected:
  static SpikedOptions options(std::size_t rank) {
    SpikedOptions options;
    options.rank = rank;
    options.guarantee = GetParam().guarantee;
    options.subspace = GetParam().subspace;
    options.power = {.rounds = 30, .filter = RowFilter::kOff};
    return options;
  }
};

TEST_P(Spiked, WithoutNoiseAgreesWithADenseSolve) {
  std::mt19937_64 random(1);
  Matrix U;
  const RowMajorMatrix rows = spiked_rows(random, 4000, 12, Eigen::Vector2d(40, 15), U);
  const PrivacyPlan plan = without_noise(plan_spiked(Adjacency::kReplaceOne, {}, options(2)));
  auto oracle = oracle_over(rows, 40, plan, 1);
  const auto fit = fit_spiked(oracle, {}, options(2));
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_TRUE(oracle.complete()) << "its plan is what the oracle metered";
  const Matrix S = rows.transpose() * rows / 4000.0;
  const SymmetricEigen dense = symmetric_eigen(S);
  EXPECT_LT(sin_squared(dense.vectors.rightCols(2), fit->pca.components), 1e-9);
  // At most a thousandth of the rows are shortened on their way into the eigenvalues.
  const double slack = GetParam().guarantee == Guarantee::kModel ? 1e-3 : 0.3;
  EXPECT_LT((fit->pca.eigenvalues - dense.values.tail(2).reverse()).cwiseAbs().maxCoeff(), slack);
  const double rest = (S.trace() - dense.values.tail(2).sum()) / 10;
  EXPECT_NEAR(fit->noise_variance, rest, slack / 5);
}

TEST_P(Spiked, FindsTheModelAtEpsilonOneWithoutAGapBetweenTheSpikes) {
  std::mt19937_64 random(2);
  Matrix U;
  const RowMajorMatrix rows = spiked_rows(random, 20000, 50, Eigen::Vector3d(20, 20, 20), U);
  SpikedOptions spiked = options(3);
  spiked.power = {.rounds = 4};
  if (spiked.guarantee == Guarantee::kModel) spiked.spike = 20;  // sigma^2 is left to the pilot
  const auto plan = calibrate(plan_spiked(Adjacency::kReplaceOne, {}, spiked), *Epsilon::of(1), *Delta::of(1e-6));
  ASSERT_TRUE(plan.ok());
  auto oracle = oracle_over(rows, 17, *plan, 3);
  const auto fit = fit_spiked(oracle, {}, spiked);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_TRUE(oracle.complete());
  EXPECT_LT(sin_squared(U, fit->pca.components), 0.05);
  EXPECT_LT((fit->pca.eigenvalues.array() - 21).abs().maxCoeff(), 3);
  EXPECT_NEAR(fit->noise_variance, 1, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Ways, Spiked,
                         ::testing::Values(Setting{"gram", Guarantee::kStrict, Subspace::kGram},
                                           Setting{"power", Guarantee::kStrict, Subspace::kAdaptivePower},
                                           Setting{"model", Guarantee::kModel, Subspace::kGram}),
                         [](const auto& info) { return info.param.name; });

TEST(SpikedRank, CountsTheSpikesAboveTheNoise) {
  for (const std::size_t spikes : {1U, 3U, 6U}) {
    std::mt19937_64 random(spikes);
    Matrix U;
    const RowMajorMatrix rows =
        spiked_rows(random, 20000, 60, Vector::Constant(static_cast<Eigen::Index>(spikes), 30), U);
    const SpikedOptions automatic;
    const auto plan =
        calibrate(plan_spiked(Adjacency::kAddRemoveOne, {}, automatic), *Epsilon::of(2), *Delta::of(1e-6));
    auto oracle = oracle_over(rows, 20, *plan, spikes);
    const auto fit = fit_spiked(oracle, {}, automatic);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_EQ(fit->pca.components.cols(), static_cast<Eigen::Index>(spikes));
  }
  EXPECT_EQ(rank_above_noise(Vector::Constant(40, 1.0), 1.2, 10000), 0U) << "no spike at all";
}

TEST(SpikedOptions, RefusesWhatCannotBe) {
  const auto refused = [](const std::function<void(SpikedOptions&)>& change, Adjacency adjacency) {
    SpikedOptions options;
    options.rank = 2;
    change(options);
    const auto status = check(10, adjacency, options);
    return !status.ok() && status.error().code == ErrorCode::kUsage;
  };
  const auto replace = Adjacency::kReplaceOne;
  EXPECT_TRUE(refused([](auto& o) { o.rank = 10; }, replace)) << "rank >= d";
  EXPECT_TRUE(refused([](auto& o) { o.rank = 0; }, replace));
  EXPECT_TRUE(refused([](auto& o) { o.noise_variance = 0; }, replace));
  EXPECT_TRUE(refused([](auto& o) { o.spike = -1; }, replace));
  EXPECT_TRUE(refused([](auto& o) { o.guarantee = Guarantee::kModel; }, Adjacency::kAddRemoveOne));
  EXPECT_TRUE(refused([](auto& o) { o.rank.reset(), o.guarantee = Guarantee::kModel; }, replace));
  EXPECT_TRUE(refused([](auto& o) { o.rank.reset(), o.subspace = Subspace::kAdaptivePower; }, replace));
  EXPECT_FALSE(refused([](auto&) {}, replace));
}

TEST(SpikedPlan, SaysWhenItRestsOnAModel) {
  SpikedOptions options;
  options.rank = 2;
  EXPECT_FALSE(plan_spiked(Adjacency::kReplaceOne, {}, options).model_based);
  options.guarantee = Guarantee::kModel;
  const PrivacyPlan shape = plan_spiked(Adjacency::kReplaceOne, {}, options);
  EXPECT_TRUE(shape.model_based);
  EXPECT_TRUE(calibrate(shape, *Epsilon::of(1), *Delta::of(1e-6))->model_based) << "calibration keeps the mark";
}

TEST(CovarianceFit, GramIsTheReleasedMatrixMadePositive) {
  std::mt19937_64 random(7);
  const RowMajorMatrix rows = test::normal_matrix(random, 300, 6) / 3;
  const CovarianceProgram program;
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  const PrivacyPlan silent = without_noise(*plan(program, budget));
  auto exact = oracle_over(rows, 10, silent, 1);
  const auto dense = fit(program, exact)->dense();
  EXPECT_LT((dense - rows.transpose() * rows / 300.0).norm(), 1e-4);  // rows are truncated to the lattice
  const PrivacyPlan noisy = *plan(program, budget);
  auto oracle = oracle_over(rows, 10, noisy, 1);
  const auto drowned = fit(program, oracle);
  EXPECT_GE(drowned->pca.eigenvalues.minCoeff(), 0);
  EXPECT_GE(symmetric_eigenvalues(drowned->dense()).minCoeff(), -1e-9);
}

}  // namespace
}  // namespace eigenveil
