// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/forecast.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/forecast/measure.hpp"
#include "eigenveil/forecast/spectrum_model.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

Budget budget_of(double epsilon) { return {*Epsilon::of(epsilon), *Delta::of(1e-6)}; }

// The forecast against the thing itself: many rows, drawn and fitted in full.
TEST(Forecast, IsWhatTheMethodsReallyReach) {
  const SpectrumModel model{20000, gap_spectrum(60, 1, 10), 1.2, 1};
  const auto sample = draw_sample(model, 2, 1);
  ASSERT_TRUE(sample.ok());
  EXPECT_LT(sample->rows(), 5000U);
  const PcaOptions options{.components = 1};
  for (const PcaProgram& program :
       {PcaProgram{PcaMethod::kGram, options}, PcaProgram{PcaMethod::kAdaptivePower, options, {.rounds = 6}}}) {
    const auto forecast = eigenveil::forecast(*estimator(program), *sample, budget_of(1), model.rows);
    ASSERT_TRUE(forecast.ok()) << forecast.error().message;
    const PrivacyPlan noisy = *plan(program, budget_of(1));
    double measured = 0;
    for (std::uint64_t seed = 10; seed < 15; ++seed) {
      const Eigenbasis basis(model, seed);
      auto oracle = test::oracle_over(draw_rows(model, basis, model.rows, seed), 1.2, noisy, seed);
      measured += sin_squared(basis.top(), fit(program, oracle)->pca.components) / 5;
    }
    EXPECT_GT(forecast->error, measured / 2.5) << describe(program);
    EXPECT_LT(forecast->error, measured * 2.5) << describe(program);
  }
}

TEST(Forecast, StatesTheNoiseOfEveryAnswer) {
  const SpectrumModel model{50000, gap_spectrum(20, 1, 4), 2, 1};
  const auto sample = draw_sample(model, 1, 1);
  const PcaProgram gram{PcaMethod::kGram, {.components = 1}};
  const auto forecast = eigenveil::forecast(*estimator(gram), *sample, budget_of(1), model.rows);
  ASSERT_EQ(forecast->noise.size(), 1U);
  EXPECT_EQ(forecast->noise[0].label, "covariance");
  const double mu = test::mu_of(plan(gram, budget_of(1))->events.back());
  EXPECT_NEAR(forecast->noise[0].deviation, 4 / mu / 50000, 1e-6);  // B^2 / (mu n)
}

// 001's claim, and its limit: many columns of low coherence are for adaptive-power; few heavy rows are for gram.
TEST(BestOf, KnowsWhichMethodIsBetter) {
  const auto chosen = [](const SpectrumModel& model, double epsilon) {
    const auto sample = draw_sample(model, 2, 1);
    const auto programs = candidates({.components = 1}, static_cast<std::size_t>(model.spectrum.size()));
    std::vector<Forecast> forecasts;
    for (const PcaProgram& program : programs)
      forecasts.push_back(*forecast(*estimator(program), *sample, budget_of(epsilon), model.rows));
    return programs[best_of(forecasts)].method;
  };
  EXPECT_EQ(chosen({10000, gap_spectrum(150, 1, 5), 1.2, 1}, 1), PcaMethod::kAdaptivePower);
  EXPECT_EQ(chosen({20000, gap_spectrum(10, 1, 5), 1.5, 1}, 1), PcaMethod::kGram);
  SpectrumModel heavy{40000, Vector::Constant(60, 1e-6), 1, 1, 0.005};
  heavy.spectrum[0] = 0.005 * 0.25;
  EXPECT_EQ(chosen(heavy, 4), PcaMethod::kGram);
}

/// The mean of the rows: an estimator that no model and no measure was made for.
class MeanEstimator final : public Estimator {
 public:
  std::string_view name() const override { return "mean"; }
  std::string method() const override { return "sums"; }
  std::string purpose() const override { return "mean"; }
  nlohmann::json options() const override { return nlohmann::json::object(); }
  Status check(const RowsShape& /*shape*/, const Budget& /*budget*/) const override { return {}; }
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    return PrivacyPlan(budget.adjacency, {{"mean sums", GaussianEvent{1}}});
  }
  std::size_t bytes(std::size_t columns, int /*threads*/) const override { return 8 * columns; }
  Result<Fit> fit(Oracle& oracle, const Budget& /*budget*/) const override {
    const auto sums = oracle.ask("mean sums", ClassSums{1});
    if (!sums) return sums.error();
    return Fit{{{"mean", sums->value() / static_cast<double>(*oracle.shape().rows), true}}, {}};
  }
};

TEST(Forecast, OfANewEstimatorComesFromTheContractAlone) {
  const SpectrumModel model{100000, Vector::Ones(5), 5, 1};
  const auto sample = draw_sample(model, 1, 1);
  ASSERT_LT(sample->rows(), model.rows);
  const auto at = [&](std::size_t rows) { return *forecast(MeanEstimator(), *sample, budget_of(1), rows); };
  const Forecast one = at(model.rows);
  EXPECT_EQ(one.method, "sums");
  EXPECT_EQ(one.bytes, 40U);
  ASSERT_EQ(one.noise.size(), 1U);
  const double mu =
      test::mu_of(calibrate(*MeanEstimator().plan({5, 100000, {5, 20}, Adjacency::kReplaceOne}, budget_of(1)),
                            *Epsilon::of(1), *Delta::of(1e-6))
                      ->events[0]);
  EXPECT_NEAR(one.noise[0].deviation * 1e5, 2 * 5 / mu, 0.01);  // 2 B / mu
  EXPECT_GT(one.error, 0);
  // The noise of twice as many rows is half as large, and nothing else counts: the truth is the same rows' own mean.
  EXPECT_NEAR(at(2 * model.rows).error, one.error / 2, one.error / 20);
}

/// Nothing but noise in the answers.
class DrownedEstimator final : public Estimator {
 public:
  explicit DrownedEstimator(Error error) : error_(std::move(error)) {}
  std::string_view name() const override { return "mean"; }
  std::string method() const override { return "none"; }
  std::string purpose() const override { return "none"; }
  nlohmann::json options() const override { return nlohmann::json::object(); }
  Status check(const RowsShape& /*shape*/, const Budget& /*budget*/) const override { return {}; }
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    return PrivacyPlan(budget.adjacency, {{"mean sums", GaussianEvent{1}}});
  }
  std::size_t bytes(std::size_t /*columns*/, int /*threads*/) const override { return 0; }
  Result<Fit> fit(Oracle& /*oracle*/, const Budget& /*budget*/) const override { return error_; }

 private:
  Error error_;
};

TEST(Forecast, OfAFitThatLearnsNothingIsOneAndOurOwnMistakesStayErrors) {
  const auto sample = draw_sample({1000, Vector::Ones(3), 3, 1}, 1, 1);
  const auto drowned = forecast(DrownedEstimator(bad_input("nothing but noise")), *sample, budget_of(1), 1000);
  ASSERT_TRUE(drowned.ok());
  EXPECT_DOUBLE_EQ(drowned->error, 1);
  EXPECT_FALSE(forecast(DrownedEstimator(internal_error("out of order")), *sample, budget_of(1), 1000).ok());
}

TEST(ScaledPlan, KeepsTheSizeOfABatch) {
  const PrivacyPlan plan(Adjacency::kAddRemoveOne, {{"batches", PoissonGaussianEvent{0.01, 2}, 5}});
  const auto batches = [](const PrivacyPlan& scaled) {
    return std::get<PoissonGaussianEvent>(scaled.events[0].mechanism);
  };
  EXPECT_DOUBLE_EQ(batches(scaled_plan(plan, 10)).q, 0.1);
  EXPECT_DOUBLE_EQ(batches(scaled_plan(plan, 10)).sigma, 2);
  EXPECT_DOUBLE_EQ(batches(scaled_plan(plan, 1000)).q, 1);
}

// Every kind of model that is forecast has its own measure; others have a relative error.
TEST(Measure, OfComponentsCountsTheLeadingOnes) {
  const Truth axes = [](const std::string&) { return Matrix(Matrix::Identity(2, 4)); };
  Fit found{{{"components", Matrix::Identity(1, 4)}}, {}};
  EXPECT_DOUBLE_EQ(measure_of("pca").error(axes, found), 0) << "the second is not asked for";
  found.arrays[0].values = Matrix::Identity(4, 4).bottomRows(1);
  EXPECT_DOUBLE_EQ(measure_of("pca").error(axes, found), 1);
  EXPECT_DOUBLE_EQ(measure_of("something new").error(axes, {{{"first", Matrix::Zero(2, 4)}}, {}}), 1);
}

}  // namespace
}  // namespace eigenveil
