// SPDX-License-Identifier: Apache-2.0
// Post-processing of released matrices: exact solves, ridges, the flow and its starts.
#include "eigenveil/estimators/gep/solve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <set>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/linalg/generalized.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Matrix symmetric_noise(std::mt19937_64& random, Eigen::Index d) {
  const Matrix S = test::normal_matrix(random, d, d);
  return (S + S.transpose()) / std::sqrt(2.0);
}

Matrix definite(std::mt19937_64& random, Eigen::Index d) {
  const Matrix F = test::normal_matrix(random, d, 3 * d);
  return F * F.transpose() / static_cast<double>(3 * d);
}

Multiply exact(const Matrix& A, const Matrix& B) {
  return [&A, &B](const Matrix& V) -> Result<Products> { return Products{A * V, B * V}; };
}

double quotient(const Matrix& A, const Matrix& B, const Vector& v) { return v.dot(A * v) / v.dot(B * v); }

TEST(SolvePair, WellAboveTheNoiseThereIsNoRidge) {
  std::mt19937_64 random(1);
  const Matrix A = symmetric_noise(random, 8);
  const Matrix B = definite(random, 8);
  const auto solved = solve_matrices({A, B, 0, 1e-6, 0}, {.components = 3});
  ASSERT_TRUE(solved.ok());
  EXPECT_EQ(solved->ridge, 0);
  EXPECT_THAT(solved->notes, IsEmpty());
  EXPECT_LT((A * solved->vectors - B * solved->vectors * solved->values.asDiagonal()).norm(), 1e-8);
}

TEST(SolvePair, AnIndefiniteBGetsARidgeAndSaysSo) {
  std::mt19937_64 random(2);
  const double sigma = 0.2;
  const Matrix A = definite(random, 30);
  // Two groups of columns that move together and against each other, weaker than the noise's edge.
  Vector groups = Vector::Ones(30);
  groups.tail(15).setConstant(-1);
  const Matrix B = 0.2 * groups * groups.transpose() + sigma * symmetric_noise(random, 30);
  const auto solved = solve_matrices({A, B, 0, sigma, 0}, {.components = 2});
  ASSERT_TRUE(solved.ok());
  EXPECT_GT(solved->ridge, sigma);
  EXPECT_THAT(solved->notes, Contains(HasSubstr("ridge")));

  // What was paid for is released: a ridge that leaves B no inverse gives way, and a note says so.
  const auto too_small = solve_matrices({A, B, 0, sigma, 0}, {.components = 2, .ridge = 0.0});
  ASSERT_TRUE(too_small.ok());
  EXPECT_EQ(too_small->ridge, solved->ridge);
  EXPECT_THAT(too_small->notes, Contains(HasSubstr("The ridge 0 was too small")));
}

// What noise hides is not inverted: independent columns whose released covariances are noise alone are solved as if
// they were known to be independent, and covariances above the noise are used.
TEST(SolvePair, CovariancesShrinkByTheShareThatNoiseHas) {
  std::mt19937_64 random(3);
  const auto cosine = [&](const Matrix& B, double sigma) {
    Vector mean = Vector::Zero(B.rows());
    mean.head(5).setOnes();
    const Matrix noisy = B + sigma * symmetric_noise(random, B.rows());
    const auto solved = solve_matrices({mean * mean.transpose(), noisy, 0, sigma, 0}, {.components = 1});
    return std::abs(solved->vectors.col(0).normalized().dot(B.llt().solve(mean).normalized()));
  };
  EXPECT_GT(cosine(Matrix::Identity(500, 500), 0.1), 0.999);
  EXPECT_GT(cosine(Matrix::Identity(30, 30) + Matrix::Constant(30, 30, 2), 0.03), 0.98);  // 0.92 without covariances
}

TEST(SolvePair, ASingularBWithoutNoiseIsSolvedToo) {
  Matrix B = Matrix::Identity(4, 4);
  B(3, 3) = 0;  // a constant column
  Matrix A = Matrix::Zero(4, 4);
  A(0, 0) = 2;
  A(1, 1) = 1;
  const auto solved = solve_matrices({A, B, 0, 0, 0}, {.components = 2});
  ASSERT_TRUE(solved.ok());
  EXPECT_NEAR(solved->values[0], 2, 1e-8);
  EXPECT_NEAR(solved->values[1], 1, 1e-8);
  EXPECT_THAT(solved->notes[0], HasSubstr("singular"));
}

TEST(SolvePair, RefusesOptionsThatDoNotGoTogether) {
  const Matrix I = Matrix::Identity(4, 4);
  for (const GepOptions& options :
       {GepOptions{.components = 0}, GepOptions{.components = 5}, GepOptions{.components = 2, .sparsity = 1},
        GepOptions{.components = 2, .sparsity = 5}, GepOptions{.components = 1, .start = GepStart::kAdmm},
        GepOptions{.components = 1, .rounds = 0}, GepOptions{.components = 1, .step = -1.0},
        GepOptions{.components = 1, .ridge = -1.0}})
    EXPECT_FALSE(solve_matrices({I, I, 0, 0, 0}, options).ok());
}

TEST(Flow, ClimbsFromAnyStartToTheLargestValue) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const Matrix A = symmetric_noise(random, 10);
    const Matrix B = definite(random, 10);
    FlowOptions options{.rounds = 5000};
    options.average = false;
    options.tolerance = 1e-13;
    // the random start's quotient is negative about every other time
    const auto flowed = rayleigh_flow(exact(A, B), random_start(10, 1, seed), options);
    ASSERT_TRUE(flowed.ok());
    const double best = top_generalized_eigenpairs(A, B, 1)->values[0];
    EXPECT_NEAR(quotient(A, B, flowed->V.col(0)), best, 1e-6) << seed;
  }
}

TEST(Flow, EndsAtTheTopEvenWhenEveryQuotientIsNegative) {
  std::mt19937_64 random(3);
  const Matrix A = -definite(random, 6) - Matrix::Identity(6, 6);
  const Matrix B = definite(random, 6);
  FlowOptions options{.rounds = 20000};
  options.average = false;
  options.tolerance = 1e-14;
  const auto flowed = rayleigh_flow(exact(A, B), random_start(6, 1), options);
  const double best = top_generalized_eigenpairs(A, B, 1)->values[0];
  EXPECT_NEAR(quotient(A, B, flowed->V.col(0)), best, 1e-5 * std::fabs(best));
}

TEST(Flow, ABlockFindsSeveralVectors) {
  std::mt19937_64 random(4);
  const Matrix A = symmetric_noise(random, 12);
  const Matrix B = definite(random, 12);
  FlowOptions options{.rounds = 5000};
  options.average = false;
  options.tolerance = 1e-13;
  const auto flowed = rayleigh_flow(exact(A, B), random_start(12, 3), options);
  const auto best = top_generalized_eigenpairs(A, B, 3);
  EXPECT_LT((flowed->values - best->values).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_LT((flowed->V.transpose() * B * flowed->V - Matrix::Identity(3, 3)).norm(), 1e-4);
}

// Matrices with s columns that matter, and how it looks through noise.
NoisyMatrices planted(std::mt19937_64& random, Eigen::Index d, Eigen::Index s, double noise,
                      std::set<Eigen::Index>& support) {
  Vector v = Vector::Zero(d);
  while (static_cast<Eigen::Index>(support.size()) < s)
    support.insert(static_cast<Eigen::Index>(random() % static_cast<std::uint64_t>(d)));
  for (const Eigen::Index i : support) v[i] = (random() % 2 == 0 ? 1 : -1) / std::sqrt(static_cast<double>(s));
  Matrix B = 0.2 * definite(random, d) + 0.8 * Matrix::Identity(d, d);
  const Vector Bv = B * v / std::sqrt(v.dot(B * v));
  Matrix A = Bv * Bv.transpose() + noise * symmetric_noise(random, d);
  B += noise * symmetric_noise(random, d);
  return {A, B, noise, noise, 0};
}

double f1(const Matrix& V, const std::set<Eigen::Index>& support) {
  double hits = 0;
  double found = 0;
  for (Eigen::Index i = 0; i < V.rows(); ++i)
    if (V.row(i).squaredNorm() > 0) {
      ++found;
      hits += support.contains(i) ? 1 : 0;
    }
  return 2 * hits / (found + static_cast<double>(support.size()));
}

TEST(Sparse, EveryStartFindsThePlantedSupport) {
  for (const GepStart start : {GepStart::kAuto, GepStart::kAdmm}) {
    std::mt19937_64 random(5);
    std::set<Eigen::Index> support;
    const NoisyMatrices matrices = planted(random, 40, 5, 0.01, support);
    GepOptions options{.components = 1, .sparsity = 5, .start = start};
    const auto solved = solve_matrices(matrices, options);
    ASSERT_TRUE(solved.ok());
    EXPECT_EQ(f1(solved->vectors, support), 1);
  }
}

TEST(Sparse, RefusesAdmmForManyColumns) {
  const Matrix I = Matrix::Identity(301, 301);
  const auto refused = admm_start(I, I, 0, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("300"));
}

// Where the truncated flow ends, as a Rayleigh quotient.
double end_of_flow(const NoisyMatrices& matrices, const Matrix& start, std::size_t s) {
  FlowOptions options{.rounds = 500, .sparsity = s};
  options.average = false;
  options.tolerance = 1e-12;
  const auto flowed = rayleigh_flow(exact(matrices.A, matrices.B), start, options);
  const Vector v = flowed->V.col(0);
  return quotient(matrices.A, matrices.B, v);
}

TEST(Sparse, AdmmStartIsNeverWorseThanTheBestOfFiveRandomOnes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::set<Eigen::Index> support;
    const NoisyMatrices matrices = planted(random, 25, 4, 0.03, support);
    const auto start = admm_start(matrices.A, matrices.B, matrices.sigma_a, 1);
    ASSERT_TRUE(start.ok());
    const double ours = end_of_flow(matrices, *start, 4);
    double best = -1e300;
    for (std::uint64_t i = 0; i < 5; ++i)
      best = std::max(best, end_of_flow(matrices, random_start(25, 1, 100 * seed + i), 4));
    EXPECT_GE(ours, best - 1e-6) << seed;
  }
}

TEST(Sparse, AdmmStartWorksForSeveralVectors) {
  std::mt19937_64 random(7);
  const Eigen::Index d = 20;
  const Matrix B = 0.2 * definite(random, d) + 0.8 * Matrix::Identity(d, d);
  Matrix A = 1e-3 * symmetric_noise(random, d);
  for (Eigen::Index k = 0; k < 3; ++k) {
    Vector v = Vector::Zero(d);
    v.segment(3 * k, 3).setConstant(1);
    A += (3.0 - static_cast<double>(k)) * (B * v) * (B * v).transpose() / v.dot(B * v);
  }
  const auto start = admm_start(A, B, 1e-3, 3);
  ASSERT_TRUE(start.ok());
  ASSERT_EQ(start->cols(), 3);
  GepOptions options{.components = 3, .sparsity = 9, .start = GepStart::kAdmm};
  const auto solved = solve_matrices({A, B, 1e-3, 0, 0}, options);
  ASSERT_TRUE(solved.ok());
  EXPECT_EQ(f1(solved->vectors, {0, 1, 2, 3, 4, 5, 6, 7, 8}), 1);
  const auto dense = top_generalized_eigenpairs(A, B, 3);
  EXPECT_LT((solved->values - dense->values).cwiseAbs().maxCoeff(), 0.05);
}

}  // namespace
}  // namespace eigenveil
