// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/gep.hpp"
#include "options.hpp"

namespace eigenveil::app {

/// Options of the generalized eigenproblems, as the user typed them.
struct GepFlags {
  std::size_t components = 0;
  std::string noise = "auto";
  std::optional<std::size_t> sparsity;
  std::string init = "auto";
  std::string step = "auto";
  std::size_t rounds = GepChoices().rounds;
  std::string ridge = "auto";
  void add_to(CLI::App& app);
  Result<GepChoices> choices() const;
};

/// All that a fit of rows takes.
struct FitFlags {
  RowFlags rows;
  GepFlags gep;
  PrivacyFlags privacy;
  OutputFlags output;
  RunFlags run;
  void add_to(CLI::App& app);
  Result<FitJob> job() const { return fit_job(rows, privacy, run, output); }
};

/// "1.5" and "LO:HI"
Result<double> number_from_text(const std::string& text, const char* option);
Result<NumericColumn> range_from_text(const std::string& text, const char* option);
std::vector<std::string> split_text(const std::string& text, char separator);

}  // namespace eigenveil::app
