// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/gram.hpp"

#include <gtest/gtest.h>

#include "eigenveil/linalg/decompositions.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::gapped_rows;
using test::oracle_over;
using test::sin_squared;
using test::without_noise;

// What the oracle summed: rows truncated to the lattice.
Matrix lattice_gram(const RowMajorMatrix& rows, double radius) {
  const BoundedRows bounded = test::bound_matrix(rows, radius);
  std::vector<std::int32_t> buffer;
  Matrix values(rows.rows(), rows.cols());
  for (std::size_t chunk = 0, i = 0; chunk < bounded.store().chunks(); ++chunk) {
    const std::int32_t* u = *bounded.store().read(chunk, buffer);
    for (std::size_t r = 0; r < bounded.store().rows_in(chunk); ++r, ++i)
      for (Eigen::Index j = 0; j < rows.cols(); ++j)
        values(static_cast<Eigen::Index>(i), j) = *u++ * bounded.lattice().unit();
  }
  return values.transpose() * values / static_cast<double>(rows.rows());
}

struct Size {
  Eigen::Index n;
  Eigen::Index d;
  std::size_t k;
};

class WithoutNoise : public ::testing::TestWithParam<Size> {};

TEST_P(WithoutNoise, AgreesWithADirectDenseSolve) {
  const auto [n, d, k] = GetParam();
  std::mt19937_64 random(static_cast<std::uint64_t>(d));
  const RowMajorMatrix rows = test::normal_matrix(random, n, d) / std::sqrt(static_cast<double>(d));
  const PcaOptions options{.components = k};
  const PrivacyPlan plan = without_noise(plan_gram(Adjacency::kReplaceOne, options));
  auto oracle = oracle_over(rows, 10, plan, 1);
  const auto fit = fit_gram(oracle, options);
  ASSERT_TRUE(fit.ok());
  EXPECT_TRUE(oracle.complete());

  const Matrix G = lattice_gram(rows, 10);
  const SymmetricEigen dense = symmetric_eigen(G);
  const auto top = static_cast<Eigen::Index>(k);
  EXPECT_LT((fit->eigenvalues - dense.values.tail(top).reverse()).cwiseAbs().maxCoeff(), 1e-9);
  // ||G V - V diag(lambda)|| and orthonormality, not the digits
  const Matrix residual = G * fit->components - fit->components * fit->eigenvalues.asDiagonal();
  EXPECT_LT(residual.norm(), 1e-9);
  EXPECT_LT((fit->components.transpose() * fit->components - Matrix::Identity(top, top)).norm(), 1e-9);
  for (Eigen::Index j = 0; j < top; ++j) {
    Eigen::Index largest = 0;
    fit->components.col(j).cwiseAbs().maxCoeff(&largest);
    EXPECT_GT(fit->components(largest, j), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(GramPca, WithoutNoise,
                         ::testing::Values(Size{200, 1, 1}, Size{500, 10, 3}, Size{300, 40, 40}, Size{900, 450, 5}));

TEST(GramPca, ReachesItsErrorAtEpsilonOne) {
  const PcaOptions options{.components = 1};
  const auto plan = calibrate(plan_gram(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
  ASSERT_TRUE(plan.ok());
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    Vector direction;
    const RowMajorMatrix rows = gapped_rows(random, 20000, 50, 5, direction);
    auto oracle = oracle_over(rows, 1.5, *plan, seed);
    const auto fit = fit_gram(oracle, options);
    ASSERT_TRUE(fit.ok());
    mean += sin_squared(direction, fit->components) / 10;
  }
  EXPECT_LE(mean, 0.004);
}

TEST(GramPca, PrivateMeanIsSubtracted) {
  std::mt19937_64 random(3);
  Vector direction;
  RowMajorMatrix rows = gapped_rows(random, 20000, 20, 8, direction);
  Vector shift = Vector::Zero(20);
  shift[4] = 2;
  rows.rowwise() += shift.transpose();
  PcaOptions options{.components = 1};
  options.preparation = {.mean = MeanBy::kOnce, .bound = *RowBound::of(1.5)};
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const auto plan = calibrate(plan_gram(adjacency, options), *Epsilon::of(1), *Delta::of(1e-6));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->events.size(), adjacency == Adjacency::kReplaceOne ? 2U : 3U);
    auto oracle = oracle_over(rows, 4, *plan, 5);
    const auto fit = fit_gram(oracle, options);
    ASSERT_TRUE(fit.ok());
    EXPECT_LT((fit->mean - shift).norm(), 0.1);
    EXPECT_LT(sin_squared(direction, fit->components), 0.02);
    EXPECT_NEAR(fit->rows, 20000, adjacency == Adjacency::kReplaceOne ? 0.5 : 1000);
    EXPECT_TRUE(oracle.complete());
  }
}

// A few rows are forty times longer than the others: a private bound cuts them, and with them most of the noise.
TEST(GramPca, PrivateBoundShortensTheLongestRows) {
  std::mt19937_64 random(5);
  Vector direction;
  RowMajorMatrix rows = gapped_rows(random, 20000, 50, 5, direction);
  rows.topRows(100) *= 40;
  const auto error = [&](bool private_bound, double& radius) {
    PcaOptions options{.components = 1};
    options.preparation.bound_by = private_bound ? BoundBy::kDirections : BoundBy::kStated;
    const auto plan = calibrate(plan_gram(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
    auto oracle = oracle_over(rows, 60, *plan, 5);
    const auto fit = fit_gram(oracle, options);
    EXPECT_TRUE(oracle.complete());
    radius = oracle.shape().lattice.radius;
    return sin_squared(direction, fit->components);
  };
  double radius = 0;
  EXPECT_LT(error(true, radius), 0.05);
  EXPECT_GT(radius, 1.0);  // typical rows have norm 1
  EXPECT_LT(radius, 3.0);
  EXPECT_GT(error(false, radius), 0.5);
}

TEST(GramPca, PlanAsksForWhatTheBudgetAllowsAndNoMore) {
  PcaOptions options{.components = 2};
  options.preparation.mean = MeanBy::kOnce;
  const auto plan = calibrate(plan_gram(Adjacency::kAddRemoveOne, options), *Epsilon::of(0.5), *Delta::of(1e-7));
  ASSERT_TRUE(plan.ok());
  const auto epsilon = epsilon_of(plan->events, *Delta::of(1e-7));
  ASSERT_TRUE(epsilon.ok());
  EXPECT_LE(*epsilon, 0.5);
  EXPECT_GT(*epsilon, 0.499);
}

TEST(GramPca, ThreadsDoNotChangeTheAnswer) {
  std::mt19937_64 random(4);
  Vector direction;
  const RowMajorMatrix rows = gapped_rows(random, 3000, 30, 3, direction);
  const PcaOptions options{.components = 3};
  const auto plan = calibrate(plan_gram(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
  auto one = oracle_over(rows, 1.5, *plan, 9, 1);
  const auto expected = fit_gram(one, options);
  for (const int threads : {2, 7}) {
    auto many = oracle_over(rows, 1.5, *plan, 9, threads);
    EXPECT_EQ(fit_gram(many, options)->components, expected->components);
  }
}

// Rows of nothing: what is released is noise, and the verdict must know how much of it there is.
TEST(GramPca, VerdictsCountAllTheNoiseThatWasAdded) {
  const RowMajorMatrix rows = RowMajorMatrix::Zero(2000, 20);
  for (const MeanBy mean : {MeanBy::kNone, MeanBy::kOnce}) {
    PcaOptions options{.components = 3};
    options.preparation.mean = mean;
    const auto plan = calibrate(plan_gram(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
    double squares = 0;
    double stated = 0;
    std::size_t found = 0;
    constexpr int kReleases = 8;
    for (std::uint64_t seed = 1; seed <= kReleases; ++seed) {
      auto oracle = oracle_over(rows, 2, *plan, seed);
      const auto released = release_covariance(oracle, options.preparation);
      ASSERT_TRUE(released.ok());
      const Matrix& S = moments_of(*released).S;
      squares += (S.squaredNorm() - S.diagonal().squaredNorm()) / (20 * 19 * kReleases);
      stated = moments_of(*released).deviation;
      found += judge_of(*released, 3)()->found;
    }
    // 1,520 squares of normal numbers: four deviations are 7% of their root. The mean's error adds tau^2 to entries.
    EXPECT_NEAR(std::sqrt(squares) / stated, 1, 0.1);
    EXPECT_LE(found, 1U) << "each of eight with a chance of a twentieth";
  }
}

TEST(GramPca, RefusesMoreComponentsThanColumns) {
  const PcaOptions options{.components = 4};
  const PrivacyPlan plan = without_noise(plan_gram(Adjacency::kReplaceOne, options));
  auto oracle = oracle_over(RowMajorMatrix::Ones(5, 3), 1, plan, 1);
  const auto fit = fit_gram(oracle, options);
  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.error().code, ErrorCode::kBadInput);
}

}  // namespace
}  // namespace eigenveil
