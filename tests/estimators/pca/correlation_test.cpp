// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/correlation.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::normal_matrix;
using test::oracle_over;
using test::without_noise;

const PreparationOptions kAboutMean{.mean = MeanBy::kOnce};

// Columns of very different spread, the first `shared` of them with a common part.
RowMajorMatrix uneven_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index d, Eigen::Index shared, double part) {
  RowMajorMatrix rows = normal_matrix(random, n, d);
  const Vector common = normal_matrix(random, n, 1).col(0);
  for (Eigen::Index j = 0; j < d; ++j) {
    if (j < shared) rows.col(j) = std::sqrt(1 - part) * rows.col(j) + std::sqrt(part) * common;
    rows.col(j) *= 0.25 * std::pow(0.4, static_cast<double>(j % 3));
  }
  return rows;
}

Matrix correlation(const RowMajorMatrix& rows) {
  const Matrix centred = rows.rowwise() - rows.colwise().mean();
  const Matrix S = centred.transpose() * centred;
  const Vector s = S.diagonal().cwiseSqrt().cwiseInverse();
  return s.asDiagonal() * S * s.asDiagonal();
}

TEST(CorrelationPca, WithoutNoiseAgreesWithADirectSolve) {
  std::mt19937_64 random(3);
  const RowMajorMatrix rows = uneven_rows(random, 4000, 9, 5, 0.6);
  const PcaOptions options{3, kAboutMean, {}, Scale::kCorrelation};
  auto oracle = oracle_over(rows, 5, without_noise(plan_gram(Adjacency::kReplaceOne, options)), 1);
  const auto fit = fit_gram(oracle, options);
  ASSERT_TRUE(fit.ok());
  const Matrix C = correlation(rows);
  const SymmetricEigen dense = symmetric_eigen(C);
  EXPECT_LT((fit->eigenvalues - dense.values.tail(3).reverse()).cwiseAbs().maxCoeff(), 1e-4);
  EXPECT_LT((C * fit->components - fit->components * fit->eigenvalues.asDiagonal()).norm(), 1e-3);
  EXPECT_TRUE(fit->left_out.empty());
  const Matrix centred = rows.rowwise() - rows.colwise().mean();
  const Vector spread = (centred.colwise().squaredNorm() / 4000.0).cwiseSqrt().transpose();
  EXPECT_LT((fit->spread - spread).cwiseAbs().maxCoeff(), 1e-4);
}

TEST(CorrelationPca, AsksForWhatACovarianceAsksFor) {
  const PcaOptions plain{3, kAboutMean, {}}, scaled{3, kAboutMean, {}, Scale::kCorrelation};
  EXPECT_EQ(plan_gram(Adjacency::kReplaceOne, plain), plan_gram(Adjacency::kReplaceOne, scaled));
}

TEST(CorrelationPca, ACovarianceHoldsBothMatrices) {
  std::mt19937_64 random(4);
  const RowMajorMatrix rows = uneven_rows(random, 4000, 6, 4, 0.6);
  CovarianceProgram program{PcaMethod::kGram, kAboutMean, {}, Scale::kCorrelation};
  auto oracle = oracle_over(rows, 5, without_noise(draft(pca_program(program), Adjacency::kReplaceOne)), 1);
  const auto fitted = fit(program, oracle);
  ASSERT_TRUE(fitted.ok());
  EXPECT_LT((fitted->dense() - correlation(rows)).cwiseAbs().maxCoeff(), 1e-3);
  const Matrix centred = rows.rowwise() - rows.colwise().mean();
  EXPECT_LT((fitted->covariance() - centred.transpose() * centred / 4000.0).cwiseAbs().maxCoeff(), 1e-4);
}

TEST(CorrelationPca, IsRefusedWithoutAMatrixAndWithoutAMean) {
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6), Adjacency::kReplaceOne};
  const PcaOptions options{2, kAboutMean, {}, Scale::kCorrelation};
  EXPECT_TRUE(check(PcaProgram{PcaMethod::kGram, options}, 9, budget).ok());
  for (const PcaMethod method : {PcaMethod::kPower, PcaMethod::kAdaptivePower, PcaMethod::kSpiked})
    EXPECT_FALSE(check(PcaProgram{method, options}, 9, budget).ok());
  EXPECT_FALSE(check(PcaProgram{PcaMethod::kGram, {2, {}, {}, Scale::kCorrelation}}, 9, budget).ok());
  for (const PcaProgram& one : candidates(options, 9)) EXPECT_EQ(one.method, PcaMethod::kGram);
}

ReleasedCovariance noisy(std::mt19937_64& random, const RowMajorMatrix& rows, double sigma) {
  const auto n = static_cast<double>(rows.rows());
  const Matrix centred = rows.rowwise() - rows.colwise().mean();
  const Matrix E = normal_matrix(random, rows.cols(), rows.cols()) * sigma;
  Preparation prepared{n, Vector::Zero(rows.cols())};
  // E + E^T has the deviation sqrt 2 off the diagonal and 2 on it
  return {centred.transpose() * centred / n + (E + E.transpose()) / std::sqrt(2.0), prepared, sigma};
}

TEST(CorrelationPca, AFeatureThatDoesNotVaryIsLeftOut) {
  std::mt19937_64 random(5);
  RowMajorMatrix rows = uneven_rows(random, 2000, 8, 5, 0.6);
  rows.col(2).setZero();
  rows.col(7) *= 0.01;
  const ReleasedCorrelation found = correlation_of(noisy(random, rows, 1e-4));
  EXPECT_EQ(found.left_out, (std::vector<std::size_t>{2, 7}));
  EXPECT_EQ(found.correlation.row(2).norm() + found.correlation.col(7).norm(), 0);
  EXPECT_EQ(found.correlation(0, 0), 1);
  const auto verdict = judge_of(found, 8)();
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->judged.size(), 8U);
  EXPECT_EQ(verdict->deviation.rows(), 8);
  EXPECT_EQ(verdict->deviation.row(2).norm(), 0);
  // Of nothing at all nothing is said, and it does not fail.
  const ReleasedCorrelation none = correlation_of(noisy(random, RowMajorMatrix::Zero(2000, 8), 1e-3));
  EXPECT_EQ(none.left_out.size(), 8U);
  const auto silent = judge_of(none, 3)();
  ASSERT_TRUE(silent.ok());
  EXPECT_EQ(silent->judged[0].standing, Standing::kNoise);
}

struct Tally {
  int holds = 0, wrong = 0, noise = 0, covered = 0;
};

// Over data sets: how often the first component is called what, and whether that was right.
Tally tally(Eigen::Index shared, double part, double sigma, int sets) {
  Tally found;
  const Eigen::Index d = 12;
  Matrix P = Matrix::Identity(d, d);
  P.topLeftCorner(shared, shared).array() += part;
  P.diagonal().setOnes();
  const SymmetricEigen truth = symmetric_eigen(P);
  for (int i = 0; i < sets; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(100 + i));
    const auto released = correlation_of(noisy(random, uneven_rows(random, 2000, d, shared, part), sigma));
    const SymmetricEigen seen = symmetric_eigen(released.correlation);
    const auto verdict = *judge_of(released, 3)();
    const double cos2 = std::pow(seen.vectors.col(d - 1).dot(truth.vectors.col(d - 1)), 2);
    const bool holds = verdict.judged[0].standing == Standing::kHolds;
    found.holds += holds ? 1 : 0;
    found.wrong += holds && cos2 < 0.8 ? 1 : 0;
    found.noise += verdict.judged[0].standing == Standing::kNoise ? 1 : 0;
    const double value = truth.values[d - 1];
    found.covered += verdict.low[0] <= value && value <= verdict.high[0] ? 1 : 0;
  }
  return found;
}

// The noise of C is as uneven as the spreads, which here differ six times: 0.25, 0.1 and 0.04. An even noise of the
// same size calls its largest direction a component.
TEST(CorrelationVerdicts, IndependentColumnsOfUnevenSpreadAreNoise) {
  const Tally found = tally(0, 0, 2.5e-4, 40);
  EXPECT_GE(found.noise, 36);
  EXPECT_EQ(found.holds, 0);
}

TEST(CorrelationVerdicts, ACommonPartHoldsAndItsBandHasTheTruth) {
  const Tally found = tally(8, 0.5, 5e-5, 40);
  EXPECT_GE(found.holds, 36);
  EXPECT_EQ(found.wrong, 0);
  EXPECT_GE(found.covered, 35);
}

TEST(CorrelationVerdicts, WhatNoiseLeavesUndeterminedIsNotCalledToHold) {
  const Tally found = tally(4, 0.3, 2.5e-4, 40);
  EXPECT_LE(found.wrong, 2);
}

}  // namespace
}  // namespace eigenveil
