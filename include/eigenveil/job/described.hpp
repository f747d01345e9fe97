// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "eigenveil/job/forecast.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// An option that is stated as text, by the name of its field.
struct StatedOption {
  const char* name;
  const char* meaning;                    ///< for its help
  std::optional<std::string> usual = {};  ///< if nothing is stated; none: something must be
};

/// What was stated for each option, or is usual.
class Stated {
 public:
  explicit Stated(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {}
  const std::string& text(const std::string& name) const { return texts_.at(name); }
  Result<double> number(const std::string& name) const;
  /// None: it says that word.
  Result<std::optional<double>> number_unless(const std::string& name, std::string_view word) const;

 private:
  std::map<std::string, std::string> texts_;
};

/// A kind of fit in words. The program makes a command of it, on every engine, one below `plan`, and their help.
/// Options stand in backticks, as in messages.
struct DescribedFit {
  const char* name;
  const char* title;
  std::vector<StatedOption> options;  ///< beside those of every fit
  const char* examples;
  Result<Study> (*study)(FitJob job, const Stated& stated);

  /// The same from a model that was released before, with the same options. Nothing is read or charged.
  const char* from_meaning;
  Result<Model> (*from)(const Model& released, const Stated& stated);

  /// What is guessed of rows that are planned for, beside their number and that of their columns.
  std::vector<StatedOption> guesses;
  const char* no_feature;  ///< option that names a column which is no feature
  const char* plan_title;
  const char* plan_examples;
  Result<ForecastRequest> (*forecast)(std::size_t rows, std::size_t columns, const Budget& budget,
                                      const Stated& stated);
};

}  // namespace eigenveil
