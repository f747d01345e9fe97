// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/forecaster.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/forecast/measure.hpp"
#include "eigenveil/forecast/spectrum_model.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

Budget budget_of(double epsilon) { return {*Epsilon::of(epsilon), *Delta::of(1e-6)}; }

PcaProgram gram(std::size_t k) { return {PcaMethod::kGram, {k, {.mean = MeanBy::kRefined}, {}}}; }
PcaProgram adaptive(std::size_t k, std::size_t rounds) {
  return {PcaMethod::kAdaptivePower, {k, {.mean = MeanBy::kRefined}, {}}, {.rounds = rounds}};
}
PcaProgram plain_power(std::size_t k) {
  return {PcaMethod::kPower, {k, {.mean = MeanBy::kRefined}, {}}, {.rounds = 4, .filter = RowFilter::kOff}};
}

struct Spread {
  double mean = 0;
  double deviation = 0;  // of one
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / n;
  for (const double value : values) spread.deviation += std::pow(value - spread.mean, 2) / (n - 1);
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

// All rows, made, bounded, summed up and noised by the mechanisms themselves: what every forecast stands for.
Spread by_rows(const PcaProgram& program, const SpectrumModel& model, const Budget& budget) {
  const auto columns = static_cast<std::size_t>(model.spectrum.size());
  const RowsShape shape{columns, model.rows, {model.row_bound, 20}, budget.adjacency};
  const PrivacyPlan noisy = *calibrate(draft(program, shape, budget), budget.epsilon, budget.delta);
  std::vector<double> errors;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Eigenbasis basis(model, seed);
    auto oracle = test::oracle_over(draw_rows(model, basis, model.rows, seed), model.row_bound, noisy, seed);
    errors.push_back(sin_squared(basis.top(), fit(program, oracle)->pca.components));
  }
  return spread_of(errors);
}

struct Shape {
  const char* words;
  SpectrumModel model;
  PcaProgram program;
  double epsilon;
};

// The law of the rows against the rows: within what the draws of either differ by among themselves.
TEST(Forecaster, AgreesWithRowsThatAreMade) {
  const SpectrumModel decay{20000, decay_spectrum(40, 1), 1.5, 3};
  const SpectrumModel gap{20000, gap_spectrum(60, 2, 8), 1.2, 2};
  const SpectrumModel tight{20000, decay_spectrum(30, 1), 0.5, 2};  // nearly all rows are longer than the bound
  const SpectrumModel broad{6000, gap_spectrum(160, 1, 30), 1.2, 1};
  const SpectrumModel few{600, gap_spectrum(30, 1, 10), 1.5, 1};  // what chance does to the rows counts too
  const SpectrumModel wide{10000, gap_spectrum(320, 2, 20), 1.2, 2};
  for (const Shape& shape : {Shape{"decay", decay, gram(3), 0.5}, Shape{"decay, power", decay, adaptive(3, 8), 1},
                             Shape{"gap", gap, gram(2), 1}, Shape{"gap, power", gap, adaptive(2, 8), 1},
                             Shape{"gap, no filter", gap, plain_power(2), 4}, Shape{"tight", tight, gram(2), 0.2},
                             Shape{"broad, power", broad, adaptive(1, 4), 1}, Shape{"few", few, gram(1), 4},
                             Shape{"merged", wide, gram(2), 1}}) {
    const auto law = public_model(shape.model)->law();
    const Budget budget = budget_of(shape.epsilon);
    const auto found = forecast(*estimator(shape.program), *law, budget, shape.model.rows, 6, 2);
    ASSERT_TRUE(found.ok() && *found) << shape.words;
    const Spread slow = by_rows(shape.program, shape.model, budget);
    const double chance = 3 * slow.deviation * std::sqrt(1.0 / 5 + 1.0 / 6);
    EXPECT_NEAR((*found)->error, slow.mean, chance + 0.1 * slow.mean) << shape.words;
    EXPECT_LT(slow.mean, 0.7) << shape.words << ": what drowned tells nothing";
  }
}

// The same standard numbers at every budget and every number of rows.
TEST(Forecaster, OfMoreRowsOrMoreEpsilonErrsLess) {
  const auto model = public_model(SpectrumModel{4000, decay_spectrum(50, 1), 1.5, 3});
  Forecaster forecaster(*model, 1);
  for (const PcaProgram& program : {gram(3), plain_power(3)}) {
    double by_rows = 1, by_epsilon = 1;
    for (int j = 0; j < 5; ++j) {
      const double rows = forecaster(*estimator(program), budget_of(1), std::size_t{4000} << j)->error;
      const double epsilon = forecaster(*estimator(program), budget_of(std::exp2(j)), 4000)->error;
      EXPECT_LE(rows, by_rows * 1.02) << describe(program) << j;
      EXPECT_LE(epsilon, by_epsilon * 1.02) << describe(program) << j;
      by_rows = rows;
      by_epsilon = epsilon;
    }
  }
}

TEST(Forecaster, StatesTheNoiseOfThePlanWhateverIsMerged) {
  const auto model = public_model(SpectrumModel{50000, gap_spectrum(700, 1, 9), 2, 1});
  Forecaster forecaster(*model, 1);
  const PcaProgram program{PcaMethod::kGram, {.components = 1}};
  const auto found = forecaster.timed(*estimator(program), budget_of(1), 50000);
  EXPECT_GT(found->seconds, 0);
  const double mu = std::get<GaussianEvent>(plan(program, budget_of(1))->events[0].mechanism).mu;
  ASSERT_EQ(found->noise.size(), 1U);
  EXPECT_NEAR(found->noise[0].deviation, 4 / mu / 50000, 1e-7);  // B^2 / (mu n)
  ASSERT_EQ(found->missed.size(), 1);
  EXPECT_NEAR(found->missed[0], found->error, 1e-9);
  EXPECT_EQ(found->bytes, estimator(program)->bytes(700, 1));
}

// Loadings on few columns are no matter of second moments: rows are made.
TEST(Forecaster, MakesRowsWhereTheirLawDoesNotDo) {
  EXPECT_EQ(public_model(SpectrumModel{2000, gap_spectrum(20, 1, 9), 2, 1, 1, 4})->law(), nullptr);
  EXPECT_EQ(public_model(SpectrumModel{2000, gap_spectrum(20, 1, 9), 2, 1, 0.1})->law(), nullptr);
  const auto model = public_model(SpectrumModel{2000, gap_spectrum(20, 1, 9), 2, 1, 1, 4});
  const PcaProgram program{PcaMethod::kSparsePower, {1, {}, 4}, {.rounds = 4}};
  Forecaster forecaster(*model, 1);
  const auto found = forecaster.timed(*estimator(program), budget_of(4), 2000);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_LT(found->error, 0.5);
  EXPECT_GT(found->seconds, 0);
}

}  // namespace
}  // namespace eigenveil
