// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/score_plot.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/pca/method.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

using test::normal_matrix;
using test::oracle_over;
using test::without_noise;

const RowsShape kShape{6, std::size_t{5000}, {3, 20}, Adjacency::kReplaceOne};
const Budget kBudget{*Epsilon::of(1), *Delta::of(1e-6), Adjacency::kReplaceOne};

std::unique_ptr<Estimator> pca_by(PcaMethod method, std::size_t components = 2, Scale scale = Scale::kRange) {
  const PcaOptions options{components, {.mean = MeanBy::kOnce}, {}, scale};
  return estimator(PcaProgram{method, options, {.rounds = 3}});
}

const Matrix& array_of(const Fit& fit, std::string_view name) {
  for (const NamedArray& array : fit.arrays)
    if (array.name == name) return array.values;
  throw std::runtime_error("no such array");
}

TEST(ScorePlotting, TakesTheShareThatItStates) {
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kAdaptivePower}) {
    const auto plain = *pca_by(method)->plan(kShape, kBudget);
    const auto plan = *with_score_plot(pca_by(method), {0.2})->plan(kShape, kBudget);
    ASSERT_EQ(plan.events.size(), plain.events.size() + 1);
    double all = 0;
    for (const PrivacyEvent& event : plan.events) {
      if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) all += std::pow(gaussian->mu, 2);
      if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) all += std::pow(pure->epsilon, 2);
    }
    EXPECT_EQ(plan.events.back().label, "score counts");
    EXPECT_NEAR(std::pow(test::mu_of(plan.events.back()), 2) / all, 0.2, 1e-12);
    const auto settled = calibrate(plan, kBudget.epsilon, kBudget.delta, kBudget.accounting);
    ASSERT_TRUE(settled.ok());
    EXPECT_LE(*epsilon_of(settled->events, kBudget.delta), 1.0 + 1e-9);
  }
}

TEST(ScorePlotting, WithoutNoiseCountsEveryRowOnceWhereItsScoresAre) {
  std::mt19937_64 random(8);
  RowMajorMatrix rows = normal_matrix(random, 5000, 6) * 0.1;
  rows.col(0) *= 4;
  rows.col(1) *= 2;
  for (const Scale scale : {Scale::kRange, Scale::kCorrelation}) {
    const auto with = with_score_plot(pca_by(PcaMethod::kGram, 2, scale), {0.3});
    const PrivacyPlan plan = without_noise(*with->plan(kShape, kBudget));
    auto oracle = oracle_over(rows, 3, plan, 2);
    const auto fit = with->fit(oracle, kBudget);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_TRUE(oracle.complete());
    const Matrix &counts = array_of(*fit, "score_counts"), &edges = array_of(*fit, "score_edges");
    EXPECT_NEAR(counts.sum(), 5000, 0.5);
    ASSERT_EQ(edges.cols(), counts.cols() + 1);
    // By hand, from what was released
    Matrix features = rows.rowwise() - array_of(*fit, "mean").reshaped().transpose();
    if (scale == Scale::kCorrelation)
      features = features * array_of(*fit, "spread").reshaped().cwiseInverse().asDiagonal();
    const Matrix scores = features * array_of(*fit, "components").transpose();
    Matrix expected = Matrix::Zero(counts.rows(), counts.cols());
    const auto cell = [&](Eigen::Index axis, double score) {
      Eigen::Index i = 0;
      while (i + 1 < counts.cols() && score >= edges(axis, i + 1)) ++i;
      return i;
    };
    for (Eigen::Index i = 0; i < scores.rows(); ++i) expected(cell(0, scores(i, 0)), cell(1, scores(i, 1))) += 1;
    // Rows on a cut may fall on either side of it: scores are rounded to the lattice.
    EXPECT_LE((counts - expected).cwiseAbs().sum(), 6);
    EXPECT_EQ(fit->facts["score_plot"]["standing"], "holds");
  }
}

TEST(ScorePlotting, SaysWhenItsCountsAreNoise) {
  std::mt19937_64 random(9);
  const auto with = with_score_plot(pca_by(PcaMethod::kGram), {0.01});
  const RowsShape few{6, std::size_t{30}, {3, 20}, Adjacency::kReplaceOne};
  const Budget small{*Epsilon::of(0.05), *Delta::of(1e-6), Adjacency::kReplaceOne};
  const auto plan = calibrate(*with->plan(few, small), small.epsilon, small.delta, small.accounting);
  ASSERT_TRUE(plan.ok());
  auto oracle = oracle_over(normal_matrix(random, 30, 6) * 0.1, 3, *plan, 3);
  const auto fit = with->fit(oracle, small);
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->facts["score_plot"]["standing"], "noise");
  EXPECT_NE(std::find_if(fit->warnings.begin(), fit->warnings.end(),
                         [](const std::string& one) { return one.find("noise alone") != std::string::npos; }),
            fit->warnings.end());
}

TEST(ScorePlotting, RefusesWhatCannotBeBeforeTheCharge) {
  for (const double share : {0.0, -0.1, 0.95, std::nan("")})
    EXPECT_FALSE(with_score_plot(pca_by(PcaMethod::kGram), {share})->check(kShape, kBudget).ok());
  EXPECT_FALSE(with_score_plot(pca_by(PcaMethod::kGram, 1), {0.1})->check(kShape, kBudget).ok());
  EXPECT_TRUE(with_score_plot(pca_by(PcaMethod::kGram, 2), {0.1})->check(kShape, kBudget).ok());
}

}  // namespace
}  // namespace eigenveil
