// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/observer.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/forecast/measure.hpp"
#include "eigenveil/release/line_chart.hpp"

namespace eigenveil {

/// One way to do what is asked.
struct Contender {
  std::function<std::unique_ptr<Estimator>(std::size_t rows)> make;  ///< if there are that many rows
  std::optional<Adjacency> adjacency = {};                           ///< whatever the budget says
};

/// Which way is best, how good, how long: nothing in it comes from private rows, and nothing is charged.
struct ForecastRequest {
  std::string task;
  std::shared_ptr<const PublicModel> model;
  std::vector<Contender> contenders;  ///< of those that have one method, the best is shown
  std::string kind_of_contender = "method";
  std::string subject = "The answer";  ///< that will be off by the error, in words
  std::string remedies;                ///< for noise that drowns the signal
  nlohmann::json facts = {};           ///< beside what every report says
  std::vector<std::string> notes = {};
  Budget budget;
  double target_error = 0.1;
  bool people = false;   ///< the rows of the model are people
  double rows_each = 1;  ///< who have so many rows each: sums take so much longer
  bool curves = false;   ///< the error against rows and against epsilon too
  int threads = 1;
  std::size_t memory = SIZE_MAX;  ///< bytes; a forecast on rows that are made is refused if it would take more
};

inline constexpr const char* kPcaRemedies =
    "Ask for fewer components, gather more rows, spend more epsilon, or tighten the row bound.";

struct ForecastLine {
  Forecast forecast;
  std::optional<std::size_t> rows_needed = {};  ///< for the target error, at the same budget; none: more than 4096 n
  std::optional<double> epsilon_needed = {};  ///< for the target error, with the same rows; none: more than 64 epsilon
  /// Curves never rise: what more rows, or more epsilon, were simulated to err more is averaged with its neighbours
  /// (isotonic regression).
  std::vector<std::pair<double, double>> error_by_rows = {};
  std::vector<std::pair<double, double>> error_by_epsilon = {};
};

/// What the best method will have reached, in words, and what would take it to all that is wanted.
struct Outcome {
  std::string sentence;
  std::optional<std::size_t> components = {};   ///< of those that are asked for, how many will be found
  std::optional<std::size_t> rows_needed = {};  ///< for all of them, or for the target error
  std::optional<double> epsilon_needed = {};
};

/// "rows" or "people".
inline const char* unit_of(const ForecastRequest& request) { return request.people ? "people" : "rows"; }

struct ForecastReport {
  std::vector<ForecastLine> lines;  ///< one per method
  std::size_t best;
  std::vector<std::string> warnings;
  ErrorUnit unit;
  Outcome outcome = {};

  const Forecast& winner() const { return lines[best].forecast; }
};

Result<ForecastReport> make_forecast(const ForecastRequest& request, Observer& observer);

nlohmann::json to_json(const ForecastRequest& request, const ForecastReport& report);
std::vector<LineChart> forecast_charts(const ForecastRequest& request, const ForecastReport& report);

}  // namespace eigenveil
