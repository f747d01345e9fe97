// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/preparation.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

// Shares of the total mu^2. A count is cheap to tell; the mean's error enters the covariance only squared.
constexpr double kCountShare = 0.005;
constexpr double kMeanShare = 0.05;
constexpr double kBoundShare = 0.03;
constexpr const char* kCountLabel = "row count";
constexpr const char* kMeanLabel = "column sums";
constexpr const char* kBoundLabel = "row bound";

bool counts_rows(Adjacency adjacency) { return adjacency == Adjacency::kAddRemoveOne; }

// Bounds from a thousandth of the present one up to it, four a factor of two.
std::vector<double> bound_grid(double radius) {
  std::vector<double> grid;
  for (int i = 40; i >= 0; --i) grid.push_back(radius * std::exp2(-i / 4.0));
  return grid;
}

Status bound_rows(Oracle& oracle, const PreparationOptions& options, double rows) {
  const RowsShape shape = oracle.shape();
  const std::vector<double> grid = bound_grid(shape.lattice.radius);
  const auto target = static_cast<std::int64_t>((1 - options.bound_quantile) * rows);
  const auto found = EIGENVEIL_TRY(oracle.first_at_most(kBoundLabel, NormExceedance{grid, {}}, target));
  const auto bound = EIGENVEIL_TRY(RowBound::of(grid[*found]));
  return oracle.recenter(Vector::Zero(static_cast<Eigen::Index>(shape.columns)), bound);
}

}  // namespace

std::vector<PrivacyEvent> plan_preparation(Adjacency adjacency, const PreparationOptions& options,
                                           double remaining_weight) {
  const double count = counts_rows(adjacency) ? kCountShare : 0;
  const double mean = options.private_mean ? kMeanShare : 0;
  const double bound = options.private_bound ? kBoundShare : 0;
  // total weight^2 W with (1 - count - mean - bound) W = remaining_weight^2
  const double total = remaining_weight * remaining_weight / (1 - count - mean - bound);
  std::vector<PrivacyEvent> events;
  if (count > 0) events.push_back({kCountLabel, GaussianEvent{std::sqrt(count * total)}});
  if (mean > 0) events.push_back({kMeanLabel, GaussianEvent{std::sqrt(mean * total)}});
  if (bound > 0) events.push_back({kBoundLabel, PureEvent{std::sqrt(bound * total)}});
  return events;
}

Result<Preparation> prepare(Oracle& oracle, const PreparationOptions& options) {
  const RowsShape shape = oracle.shape();
  Preparation result{static_cast<double>(shape.rows.value_or(0)),
                     Vector::Zero(static_cast<Eigen::Index>(shape.columns))};
  if (counts_rows(shape.adjacency)) {
    const auto count = EIGENVEIL_TRY(oracle.ask(kCountLabel, ClassCounts{1}));
    result.rows = std::max(1.0, std::round(count.value()(0, 0)));
  }
  if (options.private_mean) {
    const auto sums = EIGENVEIL_TRY(oracle.ask(kMeanLabel, ClassSums{1}));
    result.mean = sums.value().col(0) / result.rows;
    result.mean_deviation = sums.deviation() / result.rows;
    const auto bound =
        EIGENVEIL_TRY(options.bound ? Result<RowBound>(*options.bound) : RowBound::of(shape.lattice.radius));
    EIGENVEIL_TRY(oracle.recenter(result.mean, bound));
  }
  if (options.private_bound) EIGENVEIL_TRY(bound_rows(oracle, options, result.rows));
  return result;
}

}  // namespace eigenveil
