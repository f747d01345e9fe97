// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/matrix_oracle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/linalg/generalized.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/views.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

Matrix symmetric(std::mt19937_64& random, Eigen::Index d) {
  const Matrix S = test::normal_matrix(random, d, d);
  return (S + S.transpose()) / 2;
}

Matrix definite(std::mt19937_64& random, Eigen::Index d) {
  const Matrix F = test::normal_matrix(random, d, 4 * d);
  return F * F.transpose() / static_cast<double>(4 * d);
}

std::unique_ptr<MatrixOracle> oracle_of(const PrivateMatrices& matrices, const PrivacyPlan& plan) {
  auto made = MatrixOracle::make(matrices, 1000, reserve_without_ledger(plan), SecureRandom::insecure(1));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return *std::move(made);
}

PrivacyPlan plan_of(double mu, const std::vector<std::string>& labels) {
  PrivacyPlan plan(Adjacency::kReplaceOne);
  for (const std::string& label : labels) plan.events.push_back({label, GaussianEvent{mu}});
  return plan;
}

Apply applied(const Matrix& V) { return {*Directions::quantise(V)}; }

PrivacyPlan quiet(PrivacyPlan plan) {
  for (PrivacyEvent& event : plan.events) event.mechanism = GaussianEvent{test::kLittleNoiseOfModels};
  return plan;
}

TEST(MatrixOracle, AnswersAreExactUpToTheirNoise) {
  std::mt19937_64 random(1);
  const Matrix A = symmetric(random, 6);
  const Matrix B = definite(random, 6);
  auto oracle =
      oracle_of({A, B, 0.01, 0.02}, plan_of(test::kLittleNoiseOfModels, {"matrix a", "matrix b", "product a"}));
  EXPECT_LT((oracle->ask("matrix a", Gram{})->value() - A).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LT((oracle->ask("matrix b", Gram{})->value() - B).cwiseAbs().maxCoeff(), 1e-10);
  const Matrix V = orthonormal(test::normal_matrix(random, 6, 2));
  EXPECT_LT((oracle->ask("product a", applied(V))->value() - A * V).cwiseAbs().maxCoeff(), 1e-4);
  EXPECT_TRUE(oracle->complete());
  EXPECT_FALSE(oracle->ask("matrix a", Gram{}).ok()) << "the plan is over";
}

// Neighbours at the stated distance move the answers by no more than the noise was made for.
TEST(MatrixOracle, NeighboursStayWithinTheSensitivity) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const Eigen::Index d = 1 + i % 5;
    const double s = std::pow(10.0, i % 7 - 4);
    const Matrix A = symmetric(random, d);
    Matrix D = symmetric(random, d);
    D *= s / D.norm() * (1 - 1e-12);
    const Matrix V = orthonormal(test::normal_matrix(random, d, 1));
    const double mu = 0.5;
    const PrivacyPlan plan = plan_of(test::kLittleNoiseOfModels, {"matrix a", "product a"});
    auto one = oracle_of({A, A, s, s}, plan);
    auto two = oracle_of({A + D, A, s, s}, plan);
    const Matrix whole = one->ask("matrix a", Gram{})->value() - two->ask("matrix a", Gram{})->value();
    // sigma = sensitivity / mu, and an entry off the diagonal has sigma / sqrt(2)
    const double moved =
        oracle_of({A, A, s, s}, plan_of(mu, {"matrix a"}))->ask("matrix a", Gram{})->deviation() * std::sqrt(2.0) * mu;
    EXPECT_LE(whole.norm(), moved);
    const Matrix product = one->ask("product a", applied(V))->value() - two->ask("product a", applied(V))->value();
    EXPECT_LE(product.norm(), moved);
  }
}

TEST(MatrixOracle, NoiseHasTheStatedDeviation) {
  const Eigen::Index d = 60;
  const Matrix zero = Matrix::Zero(d, d);
  auto oracle = oracle_of({zero, zero, 0.5, 0.5}, plan_of(0.25, {"matrix a", "product b"}));
  const Matrix noise = oracle->ask("matrix a", Gram{})->value();
  // off the diagonal: 0.5 / 0.25 / sqrt(2); 1770 entries, five deviations of the estimate
  double square = 0;
  for (Eigen::Index j = 0; j < d; ++j)
    for (Eigen::Index i = j + 1; i < d; ++i) square += noise(i, j) * noise(i, j) / 1770;
  EXPECT_NEAR(std::sqrt(square), std::sqrt(2.0), 5 * std::sqrt(2.0) / std::sqrt(2 * 1770.0));
  const Matrix product = oracle->ask("product b", applied(Matrix::Identity(d, d)))->value();
  EXPECT_NEAR(product.norm() / static_cast<double>(d), 2, 5 * 2 / std::sqrt(2 * 3600.0));
}

// One triangle alone would speak for a matrix that is symmetric only nearly, and its neighbour could differ in the
// other.
TEST(MatrixOracle, BothTrianglesCount) {
  Matrix A = Matrix::Identity(3, 3);
  A(0, 2) += 1e-10;
  auto oracle = oracle_of({A, A, 1e-6, 1e-6}, plan_of(test::kLittleNoiseOfModels, {"matrix a"}));
  EXPECT_NEAR(oracle->ask("matrix a", Gram{})->value()(2, 0), 0.5e-10, 1e-14);
}

TEST(MatrixOracle, AnswersForItsMatricesAlone) {
  const Matrix I = Matrix::Identity(3, 3);
  auto oracle = oracle_of({I, I, 1, 1}, plan_of(1, {"row sum", "matrix a"}));
  EXPECT_FALSE(oracle->ask("row sum", Gram{}).ok()) << "no matrix is named";
  EXPECT_FALSE(oracle->ask("matrix a", ClassSums{1}).ok());
  EXPECT_FALSE(oracle->recenter(Vector::Zero(3), *RowBound::of(1)).ok());
}

TEST(MatrixOracle, RefusesWhatIsNoPair) {
  const Matrix I = Matrix::Identity(3, 3);
  Matrix crooked = I;
  crooked(0, 1) = 1;
  Matrix endless = I;
  endless(2, 2) = std::numeric_limits<double>::infinity();
  const auto message = [](const PrivateMatrices& matrices) {
    const Status status = MatrixOracle::check(matrices);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({I, I, 1, 1}), "");
  EXPECT_THAT(message({crooked, I, 1, 1}), HasSubstr("not symmetric"));
  EXPECT_THAT(message({I, endless, 1, 1}), HasSubstr("finite"));
  EXPECT_THAT(message({Matrix::Identity(2, 3), I, 1, 1}), HasSubstr("square"));
  EXPECT_THAT(message({I, Matrix::Identity(2, 2), 1, 1}), HasSubstr("rows"));
  EXPECT_THAT(message({I, I, 0, 1}), HasSubstr("sensitivity_a"));
  EXPECT_THAT(message({I, I, 1, std::nan("")}), HasSubstr("sensitivity_b"));
  EXPECT_THAT(message({I, I, 1e-12, 1}), HasSubstr("too small"));
}

TEST(MatricesFit, WithoutNoiseAgreesWithADenseSolve) {
  std::mt19937_64 random(3);
  const PrivateMatrices matrices{symmetric(random, 8), definite(random, 8), 1e-3, 1e-3};
  const auto dense = top_generalized_eigenpairs(matrices.A, matrices.B, 3);
  GepOptions options{.components = 3};
  const PrivacyPlan once = quiet(plan_matrices(Adjacency::kReplaceOne, options));
  auto oracle = oracle_of(matrices, once);
  const auto fit = fit_matrices(*oracle, options);
  ASSERT_TRUE(fit.ok());
  EXPECT_LT((fit->values - dense->values).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_LT((matrices.A * fit->vectors - matrices.B * fit->vectors * fit->values.asDiagonal()).norm(), 1e-8);
  EXPECT_LT((fit->vectors.transpose() * matrices.B * fit->vectors - Matrix::Identity(3, 3)).norm(), 1e-8);

  options.components = 1;
  options.noise = GepNoise::kEachStep;
  options.rounds = 500;
  const PrivacyPlan steps = quiet(plan_matrices(Adjacency::kReplaceOne, options));
  auto stepping = oracle_of(matrices, steps);
  const auto flowed = fit_matrices(*stepping, options);
  ASSERT_TRUE(flowed.ok());
  EXPECT_TRUE(stepping->complete());
  EXPECT_LT(test::misalignment(flowed->vectors.col(0), dense->vectors.col(0)), 1e-4);
}

}  // namespace
}  // namespace eigenveil
