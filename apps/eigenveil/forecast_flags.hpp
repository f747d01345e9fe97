// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/forecast.hpp"
#include "options.hpp"

namespace eigenveil::app {

/// What every command below `plan` takes, besides what it says of the rows.
struct ForecastFlags {
  double epsilon = 0;
  std::string delta;
  std::string adjacency = "replace-one";
  double target = 0.1;
  std::optional<double> rows_per_person;
  std::string plot;
  bool json = false;
  bool quiet = false;
  RunFlags run;

  void add_budget_to(CLI::App& app, const char* adjacencies = "replace-one or add-remove-one");
  void add_output_to(CLI::App& app);
  Result<Budget> budget(std::size_t rows) const;
};

/// Makes the forecast and shows it. `opening`: what it is for, in words.
int show_forecast(Result<ForecastRequest> request, const ForecastFlags& flags, const std::string& opening);

/// "Forecast for 20,000 rows, ...", for rows that are bounded.
std::string opening_words(const ForecastRequest& request, double row_bound);

}  // namespace eigenveil::app
