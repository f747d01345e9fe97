// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/forecast.hpp"
#include "options.hpp"

namespace eigenveil::app {

/// What every command below `plan` takes, besides what it says of the rows.
struct ForecastFlags {
  double epsilon = 1;
  std::string delta = "auto";
  std::string schema;
  std::string adjacency = "replace-one";
  double target = 0.1;
  bool people = false;                    ///< rows are people
  std::optional<double> rows_per_person;  ///< likewise
  std::string plot;
  bool json = false;
  bool quiet = false;
  RunFlags run;

  void add_budget_to(CLI::App& app, const char* adjacencies = "replace-one or add-remove-one");
  void add_output_to(CLI::App& app);
  /// `--rows`, of which there must be one, and `--people`, which is the same of people.
  void add_rows_to(CLI::App& app, std::size_t& rows, const char* what = "rows");
  /// `--schema`, for rows whose columns can be counted.
  void add_schema_to(CLI::App& app);
  /// Of the schema's columns but that one; without a schema as many as were `given`.
  Result<std::size_t> features(std::size_t given, const std::string& without = "") const;
  Result<Budget> budget(std::size_t rows) const;
};

/// How many values a schema lists for a column.
Result<std::size_t> categories_of(const std::string& schema, const std::string& column);

/// Makes the forecast and shows it. `opening`: what it is for, in words.
int show_forecast(Result<ForecastRequest> request, const ForecastFlags& flags, const std::string& opening);

/// "20,000 rows", or "20,000 people with about 5 rows each".
std::string rows_in_words(std::size_t rows, const ForecastFlags& flags);

/// "Forecast for 20,000 rows, ...", for rows that are bounded.
std::string opening_words(const ForecastRequest& request, double row_bound, const ForecastFlags& flags);

}  // namespace eigenveil::app
