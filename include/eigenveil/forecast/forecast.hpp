// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/forecast/public_model.hpp"
#include "eigenveil/forecast/row_law.hpp"

namespace eigenveil {

// A forecast is the estimator itself, run on rows of a public model with the noise of its plan. n rows are stood for by
// m of them: a sum over m rows with noise n/m times smaller is, divided by m, what a sum over n rows is divided by n.
// So a simulation multiplies every mu and epsilon of the plan by n/m, and the estimator need not know. A batch keeps
// its expected size: each of the m rows is taken n/m times as often.

/// The plan for m rows that is to them what `plan` is to n rows.
PrivacyPlan scaled_plan(PrivacyPlan plan, double factor);

/// The same answers with hardly any noise.
PrivacyPlan quiet_plan(PrivacyPlan plan);

/// The array of that name; empty if there is none.
Matrix array_of(const Fit& fit, const std::string& name);

/// What an answer will carry.
struct AnswerNoise {
  std::string label;
  double deviation;  ///< of the noise in one entry, after division by the number of rows; of a search: in rows
  bool search;       ///< a threshold, found by the sparse vector technique
};

/// One look at all rows.
struct Pass {
  std::size_t columns = 0;     ///< of the directions that a product is with; 0: all pairs of columns
  std::size_t thresholds = 0;  ///< that its filter was chosen from; 0: no filter
  friend bool operator==(const Pass&, const Pass&) = default;
};

struct Forecast {
  std::string method;          ///< as the estimator describes itself
  double error = 0;            ///< against the truth of the model, as `measure_of` has it
  std::optional<double> lost;  ///< components: share of the variance of the best ones that they do not capture
  Vector missed = {};          ///< components: share of each true one, by variance, that none of them captures
  double seconds = 0;          ///< of the fit, on this machine, for all rows
  std::size_t bytes = 0;       ///< of the sums, besides the rows
  std::vector<AnswerNoise> noise = {};
  std::vector<Pass> passes = {};  ///< by the law of the rows: what `seconds` does not hold yet

  double worth() const { return lost.value_or(error); }  ///< the smaller the better
};

/// Runs the estimator on every draw of the sample, with the noise that the budget asks for if there are `rows` rows,
/// and averages.
Result<Forecast> forecast(const Estimator& estimator, const Sample& sample, const Budget& budget, std::size_t rows);

/// Runs it on the law of the rows instead, `draws` times; of many columns, which average by themselves, less often. Its
/// seconds are those of the estimator alone, without looking at rows. None: the law does not tell what the estimator
/// asks for.
Result<std::optional<Forecast>> forecast(const Estimator& estimator, RowLaw& law, const Budget& budget,
                                         std::size_t rows, std::size_t draws, int threads);

/// The index of the best; of those that are about as good the first.
std::size_t best_of(const std::vector<Forecast>& forecasts);

}  // namespace eigenveil
