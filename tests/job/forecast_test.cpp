// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/forecast.hpp"

#include <gmock/gmock.h>

#include "eigenveil/job/pca.hpp"

namespace eigenveil {
namespace {

Budget budget_of(double epsilon) { return {*Epsilon::of(epsilon), *Delta::of(1e-6)}; }

ForecastReport report_of(const ForecastRequest& request) {
  Observer observer;
  auto report = make_forecast(request, observer);
  EXPECT_TRUE(report.ok());
  return *std::move(report);
}

Vector spikes(std::initializer_list<double> top, Eigen::Index columns) {
  Vector spectrum = Vector::Constant(columns, 1e-3);
  Eigen::Index i = 0;
  for (const double value : top) spectrum[i++] = value;
  return spectrum;
}

// Two components stand far above the noise, the third drowns.
TEST(Outcome, CountsTheComponentsThatWillBeFoundAndSaysWhatAllOfThemNeed) {
  const SpectrumModel model{20000, spikes({0.5, 0.25, 0.004}, 30), 1.3, 3};
  const ForecastReport report = report_of(pca_forecast(model, budget_of(0.5)));
  EXPECT_EQ(report.outcome.components, 2U);
  ASSERT_TRUE(report.outcome.rows_needed && report.outcome.epsilon_needed);
  EXPECT_GT(*report.outcome.rows_needed, 20000U);
  EXPECT_GT(*report.outcome.epsilon_needed, 0.5);
  EXPECT_THAT(report.outcome.sentence,
              testing::MatchesRegex("You will get 2 components; 3 need epsilon [0-9.]+ or [0-9,]+ rows\\."));
  // With what it says, all three are found.
  SpectrumModel more = model;
  more.rows = *report.outcome.rows_needed;
  EXPECT_EQ(report_of(pca_forecast(more, budget_of(0.5))).outcome.components, 3U);
  EXPECT_EQ(report_of(pca_forecast(model, budget_of(1.05 * *report.outcome.epsilon_needed))).outcome.components, 3U);
}

// Of very many columns rows are made, at least 200 of them, and sums are kept for every threshold of a filter.
TEST(ForecastMemory, IsAskedForBeforeAnythingIsDrawn) {
  const auto refusal = [](std::size_t columns, std::size_t memory) {
    ForecastRequest request = pca_forecast({20000, decay_spectrum(columns, 1), 1.5, 2}, budget_of(1));
    request.memory = memory;
    Observer observer;
    const auto report = make_forecast(request, observer);
    return report.ok() ? std::string() : report.error().message;
  };
  const std::string words = "a forecast for 300,000 columns takes more than the 2048 MiB of `memory`";
  EXPECT_THAT(refusal(300'000, std::size_t{2} << 30), testing::StartsWith(words));
  EXPECT_THAT(refusal(10'000, std::size_t{1} << 20), testing::StartsWith("a forecast for 10,000 columns"));
  EXPECT_EQ(refusal(4000, 1), "") << "nothing is drawn";
}

TEST(Outcome, OfNothingSaysWhatTheFirstComponentNeeds) {
  const SpectrumModel model{300, decay_spectrum(100, 1), 1.5, 2};
  const ForecastReport report = report_of(pca_forecast(model, budget_of(0.1)));
  EXPECT_EQ(report.outcome.components, 0U);
  EXPECT_THAT(report.outcome.sentence, testing::StartsWith("You will get no component; the first needs "));
}

// Where all is noise, chance alone makes some points better than those with more rows.
TEST(Curves, NeverRise) {
  const SpectrumModel model{100, decay_spectrum(60, 0.2), 1.5, 2, 0.9};  // rows of two kinds: they are made
  ForecastRequest request = pca_forecast(model, budget_of(0.1));
  request.curves = true;
  for (const ForecastLine& line : report_of(request).lines)
    for (const auto& curve : {line.error_by_rows, line.error_by_epsilon}) {
      ASSERT_GE(curve.size(), 9U);
      for (std::size_t i = 1; i < curve.size(); ++i)
        EXPECT_LE(curve[i].second, curve[i - 1].second) << line.forecast.method << " at " << curve[i].first;
    }
}

TEST(Needs, AreWhereTheErrorMeetsTheTarget) {
  const SpectrumModel model{5000, gap_spectrum(40, 1, 8), 1.5, 1};
  const ForecastReport report = report_of(pca_forecast(model, budget_of(0.5)));
  const ForecastLine& line = report.lines[0];  // gram: of the others the number of rounds is chosen anew
  ASSERT_TRUE(line.rows_needed && line.epsilon_needed);
  SpectrumModel enough = model;
  enough.rows = *line.rows_needed;
  const auto with_rows = report_of(pca_forecast(enough, budget_of(0.5)));
  EXPECT_NEAR(with_rows.lines[0].forecast.error, 0.1, 0.02);
  const auto with_epsilon = report_of(pca_forecast(model, budget_of(*line.epsilon_needed)));
  EXPECT_NEAR(with_epsilon.lines[0].forecast.error, 0.1, 0.02);
}

}  // namespace
}  // namespace eigenveil
