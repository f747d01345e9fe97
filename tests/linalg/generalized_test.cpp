// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/generalized.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include "eigenveil/linalg/fantope.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

struct Pair {
  Matrix A;
  Matrix B;
};

// A symmetric and indefinite, B positive definite with condition number about `condition`.
Pair random_pair(std::mt19937_64& random, Eigen::Index d, double condition) {
  const Matrix S = test::normal_matrix(random, d, d);
  const Matrix Q = orthonormal(test::normal_matrix(random, d, d));
  const Vector scales = Vector::LinSpaced(d, 1.0 / condition, 1.0);
  return {(S + S.transpose()) / std::sqrt(static_cast<double>(8 * d)), Q * scales.asDiagonal() * Q.transpose()};
}

struct Size {
  Eigen::Index d;
  std::size_t k;
};

class TopGeneralized : public ::testing::TestWithParam<Size> {};

TEST_P(TopGeneralized, AgreesWithDsygvd) {
  const auto [d, k] = GetParam();
  std::mt19937_64 random(static_cast<std::uint64_t>(d));
  const Pair pair = random_pair(random, d, 50);
  const auto found = top_generalized_eigenpairs(pair.A, pair.B, k);
  ASSERT_TRUE(found.ok());

  Matrix vectors = pair.A;
  Matrix B = pair.B;
  Vector values(d);
  const auto size = static_cast<lapack_int>(d);
  ASSERT_EQ(LAPACKE_dsygvd(LAPACK_COL_MAJOR, 1, 'V', 'L', size, vectors.data(), size, B.data(), size, values.data()),
            0);
  const auto top = static_cast<Eigen::Index>(k);
  EXPECT_LT((found->values - values.tail(top).reverse()).cwiseAbs().maxCoeff(), 1e-8);
  // ||A V - B V Lambda|| and V^T B V = I, not the digits
  EXPECT_LT((pair.A * found->vectors - pair.B * found->vectors * found->values.asDiagonal()).norm(), 1e-8);
  EXPECT_LT((found->vectors.transpose() * pair.B * found->vectors - Matrix::Identity(top, top)).norm(), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Generalized, TopGeneralized,
                         ::testing::Values(Size{1, 1}, Size{7, 7}, Size{40, 3}, Size{450, 4}));

TEST(Generalized, RefusesAMatrixThatIsNotPositiveDefinite) {
  Matrix B = Matrix::Identity(3, 3);
  B(2, 2) = -1;
  EXPECT_FALSE(top_generalized_eigenpairs(Matrix::Identity(3, 3), B, 1).ok());
  EXPECT_FALSE(solve_fantope(Matrix::Identity(3, 3), B, {}).ok());
}

TEST(Generalized, ExtremeEigenvaluesAreThoseOfADiagonal) {
  Vector diagonal(4);
  diagonal << -3, 1, 2, 5;
  const auto found = extreme_eigenvalues(diagonal.asDiagonal());
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->smallest, -3, 1e-12);
  EXPECT_NEAR(found->largest, 5, 1e-12);
}

TEST(Fantope, ProjectionIsFeasibleAndClosest) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const Vector w = 2 * test::normal_matrix(random, 6, 1).col(0);
    const double K = 1 + i % 3;
    const Vector h = project_capped_simplex(w, K);
    EXPECT_GE(h.minCoeff(), 0);
    EXPECT_LE(h.maxCoeff(), 1);
    EXPECT_LE(h.sum(), K + 1e-9);
    // no feasible point is closer: <w - h, z - h> <= 0
    for (int j = 0; j < 20; ++j) {
      Vector z = test::normal_matrix(random, 6, 1).col(0).cwiseAbs().cwiseMin(1);
      if (z.sum() > K) z *= K / z.sum();
      EXPECT_LE((w - h).dot(z - h), 1e-9);
    }
  }
}

TEST(Fantope, AdmmConvergesOnRandomPairs) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    const Pair pair = random_pair(random, 12, 4);
    FantopeOptions options{.components = 1 + seed % 3};
    options.penalty = seed % 2 == 0 ? 0 : 0.02;
    const auto solved = solve_fantope(pair.A, pair.B, options);
    ASSERT_TRUE(solved.ok());
    EXPECT_TRUE(solved->converged) << seed;
    EXPECT_LT(solved->primal_residual, 1e-6);
    EXPECT_LT(solved->dual_residual, 1e-6);
    if (options.penalty > 0) continue;
    // Without a penalty the optimum is the sum of the K largest (positive) generalized eigenvalues.
    const auto top = top_generalized_eigenpairs(pair.A, pair.B, options.components);
    EXPECT_NEAR((pair.A * solved->P).trace(), top->values.cwiseMax(0).sum(), 1e-4) << seed;
  }
}

// Lanczos breaks down on it: its first product is its start again.
TEST(Extremes, AMultipleOfTheIdentityHasThemToo) {
  const auto extremes = extreme_eigenvalues(3 * Matrix::Identity(500, 500));
  ASSERT_TRUE(extremes.ok());
  EXPECT_NEAR(extremes->smallest, 3, 1e-12);
  EXPECT_NEAR(extremes->largest, 3, 1e-12);
}

TEST(TopEigenpairs, OfALowRankMatrixHaveSmallResiduals) {
  Vector v = Vector::Zero(500);
  v.head(5).setOnes();
  for (const double c : {1.0, 0.9973})
    for (const std::size_t k : {1, 2, 5}) {
      const Matrix S = c * v * v.transpose();
      const auto pairs = top_eigenpairs(S, k);
      ASSERT_TRUE(pairs.ok());
      EXPECT_NEAR(pairs->values[0], 5 * c, 1e-9);
      EXPECT_LT((S * pairs->vectors - pairs->vectors * pairs->values.asDiagonal()).norm(), 1e-9);
      EXPECT_LT((pairs->vectors.transpose() * pairs->vectors - Matrix::Identity(k, k)).norm(), 1e-9);
    }
}

}  // namespace
}  // namespace eigenveil
