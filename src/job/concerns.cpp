// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/concerns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/base/figures.hpp"

namespace eigenveil {
namespace {

constexpr double kLargeEpsilon = 10;
constexpr double kNothingLearnt = 0.9;  // of an error that is 1 for a direction drawn by lot

}  // namespace

std::vector<Concern> concerns_of(const Estimator& estimator, const RowsShape& shape, const Budget& budget,
                                 const BoundingDiagnostics& diagnostics, std::optional<double> forecast) {
  std::vector<Concern> concerns;
  const bool people = shape.lattice.weight_bits > 0;
  const char* one = people ? "person" : "row";
  if (budget.epsilon.value() > kLargeEpsilon)
    concerns.push_back(
        {fmt::format("epsilon {:g} is above {:g}: it lets somebody multiply their odds about one {} by "
                     "e^{:g}, which is hardly a guarantee",
                     budget.epsilon.value(), kLargeEpsilon, one, budget.epsilon.value())});
  if (shape.rows && *shape.rows > 0 && budget.delta.value() * static_cast<double>(*shape.rows) > 1)
    concerns.push_back(
        {fmt::format("delta {} is above 1 / {}: a release that publishes one {} in full would "
                     "satisfy it; `delta` auto is small enough",
                     plain(budget.delta.value()), people ? "people" : "rows", one)});
  const auto hopeless = estimator.hopeless(shape, budget);
  if (forecast && *forecast > kNothingLearnt)
    concerns.push_back(
        {fmt::format("the best method is forecast to have an error of {:.2g} of 1 for rows of this "
                     "shape: nothing will be learnt. Gather more rows, use fewer columns, or spend more",
                     *forecast)});
  else if (hopeless && !forecast)
    concerns.push_back({*hopeless});
  if (diagnostics.zeroed > 0)
    concerns.push_back({fmt::format("{} {}rows have a value that is missing or cannot be read, or a class that is "
                                    "not listed, and would count as zero (not private: do not share this number)",
                                    diagnostics.zeroed, people ? "" : fmt::format("of {} ", diagnostics.rows)),
                        true});
  return concerns;
}

Error unconfirmed(const std::vector<Concern>& concerns) {
  std::string words;
  for (const Concern& concern : concerns) words += concern.words + ". ";
  words += "Nothing was charged; `yes` goes on all the same";
  const bool of_rows =
      std::any_of(concerns.begin(), concerns.end(), [](const Concern& concern) { return concern.of_rows; });
  return of_rows ? bad_input(words) : usage_error(words);
}

}  // namespace eigenveil
