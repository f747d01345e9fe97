// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/forecast.hpp"

#include <fmt/format.h>

#include <cmath>

#include "call.hpp"
#include "eigenveil/base/memory.hpp"
#include "eigenveil/job/clip.hpp"
#include "eigenveil/job/covariance.hpp"
#include "eigenveil/job/described.hpp"
#include "eigenveil/job/pca.hpp"
#include "eigenveil/release/line_chart.hpp"

namespace eigenveil {

DescribedFit regress_fit();  // regress.cpp

namespace {

constexpr Eigen::Index kMostCovarianceColumns = 4096;

Result<Vector> spectrum_of(const ForecastOptions& options, std::size_t columns, std::size_t components) {
  const int given = (options.spectrum.empty() ? 0 : 1) + (options.gap ? 1 : 0) + (options.decay ? 1 : 0);
  if (given > 1) return usage_error("`spectrum`, `gap` and `decay` are three ways to say the same: use one");
  if (!options.spectrum.empty()) return read_spectrum(options.spectrum, columns);
  if (options.gap && (!(*options.gap >= 1) || !std::isfinite(*options.gap)))
    return usage_error(fmt::format("`gap` must be at least 1, but is {}", *options.gap));
  if (options.gap) return gap_spectrum(columns, components, *options.gap);
  const double decay = options.decay.value_or(1);
  if (!(decay >= 0 && decay <= 10)) return usage_error(fmt::format("`decay` must lie in 0 to 10, but is {}", decay));
  return decay_spectrum(columns, decay);
}

Result<SpectrumModel> spectrum_model(const ForecastOptions& options, bool covariance) {
  const auto rows = EIGENVEIL_TRY(front::count(options.rows.value(), "rows"));
  const auto columns = EIGENVEIL_TRY(front::count(options.columns, "columns"));
  const auto components = EIGENVEIL_TRY(front::count(options.components, "components"));
  auto sparsity = EIGENVEIL_TRY(front::count(options.sparsity, "sparsity"));
  const auto rank = EIGENVEIL_TRY(front::count(options.rank, "rank"));
  if (components > columns)
    return usage_error(fmt::format("`components` must lie between 1 and `columns` {}, but is {}", columns, components));
  if (sparsity && (*sparsity < components || *sparsity > columns))
    return usage_error(
        fmt::format("`sparsity` {} must lie between `components` {} and `columns` {}", *sparsity, components, columns));
  if (rank && *rank >= columns)
    return usage_error(fmt::format("`rank` must lie between 1 and {}, but is {}", columns - 1, *rank));
  if (!(options.signal_share > 0 && options.signal_share <= 1))
    return usage_error(fmt::format("`signal_share` must lie in (0, 1], but is {}", options.signal_share));
  if (covariance && (options.columns < 2 || options.columns > kMostCovarianceColumns))
    return usage_error(
        fmt::format("a covariance is forecast of 2 to {} columns, not of {}", kMostCovarianceColumns, options.columns));
  auto spectrum = EIGENVEIL_TRY(spectrum_of(options, columns, components));
  const double typical = std::sqrt(spectrum.sum());
  const auto bound = EIGENVEIL_TRY(RowBound::of(options.row_bound.value_or(kBoundOverTypicalRow * typical)));
  return SpectrumModel{.rows = rows,
                       .spectrum = std::move(spectrum),
                       .row_bound = bound.value(),
                       .components = rank.value_or(components),
                       .signal_share = options.signal_share,
                       .sparsity = std::move(sparsity)};
}

Result<GepModel> gep_model(const ForecastOptions& options, GepTask task) {
  const bool two_views = task == GepTask::kCca;
  const auto rows = EIGENVEIL_TRY(front::count(options.rows.value(), "rows"));
  const auto components = EIGENVEIL_TRY(front::count(options.components, "components"));
  auto sparsity = EIGENVEIL_TRY(front::count(options.sparsity, "sparsity"));
  const auto x =
      EIGENVEIL_TRY(front::count(two_views ? options.x_columns : options.columns, two_views ? "x_columns" : "columns"));
  const auto y = EIGENVEIL_TRY(two_views ? front::count(options.y_columns, "y_columns") : Result<std::size_t>(0));
  const auto groups = EIGENVEIL_TRY(task == GepTask::kSir ? front::count(options.slices, "slices")
                                                          : front::count(options.classes, "classes"));
  const auto bound = EIGENVEIL_TRY(
      RowBound::of(options.row_bound.value_or(kBoundOverTypicalRow * std::sqrt(static_cast<double>(x + y)))));
  return GepModel{.task = task,
                  .rows = rows,
                  .columns = x + y,
                  .x_columns = two_views ? x : 0,
                  .classes = groups,
                  .signal = two_views               ? options.correlation
                            : task == GepTask::kFda ? options.separation
                                                    : options.explained,
                  .row_bound = bound.value(),
                  .components = components,
                  .sparsity = std::move(sparsity)};
}

Result<ForecastRequest> clip_request(const ForecastOptions& options, const Budget& budget) {
  const auto rows = EIGENVEIL_TRY(front::count(options.rows.value(), "rows"));
  const auto x = EIGENVEIL_TRY(front::count(options.x_columns, "x_columns"));
  const auto y = EIGENVEIL_TRY(front::count(options.y_columns, "y_columns"));
  const auto dim = EIGENVEIL_TRY(front::count(options.components, "dim"));
  const auto steps = EIGENVEIL_TRY(front::count(options.steps, "steps"));
  ClipTrial trial{.batch = options.batch};
  trial.training.steps = steps;
  return clip_forecast({rows, x, y, dim, options.correlation}, trial, budget);
}

Result<ForecastRequest> pca_request(const ForecastOptions& options, const Budget& budget) {
  return pca_forecast(EIGENVEIL_TRY(spectrum_model(options, false)), budget);
}

Result<ForecastRequest> covariance_request(const ForecastOptions& options, const Budget& budget) {
  const auto model = EIGENVEIL_TRY(spectrum_model(options, true));
  const auto rank = EIGENVEIL_TRY(front::count(options.rank, "rank"));
  return covariance_forecast(model, rank, budget);
}

Result<ForecastRequest> regress_request(const ForecastOptions& options, const Budget& budget) {
  const auto rows = EIGENVEIL_TRY(front::count(options.rows.value(), "rows"));
  const auto columns = EIGENVEIL_TRY(front::count(options.columns, "columns"));
  const auto text = [](const std::optional<double>& number, const char* otherwise) {
    return number ? fmt::format("{}", *number) : std::string(otherwise);
  };
  return regress_fit().forecast(rows, columns, budget,
                                Stated({{"explained", fmt::format("{}", options.explained)},
                                        {"spread", fmt::format("{}", options.spread)},
                                        {"row_bound", text(options.row_bound, "")},
                                        {"ridge", text(options.ridge, "auto")}}));
}

using MakeRequest = Result<ForecastRequest> (*)(const ForecastOptions&, const Budget&);
constexpr std::pair<std::string_view, MakeRequest> kRequests[] = {
    {"pca", pca_request}, {"covariance", covariance_request}, {"regress", regress_request}, {"clip", clip_request}};

Result<ForecastRequest> request_of(const ForecastOptions& options, const Budget& budget) {
  const std::string& task = options.task.value();
  for (const auto& [known, make] : kRequests)
    if (task == known) return make(options, budget);
  for (const GepTask one : {GepTask::kCca, GepTask::kFda, GepTask::kSir})
    if (task == name(one)) {
      const auto model = EIGENVEIL_TRY(gep_model(options, one));
      RunOptions run;
      run.threads = options.threads;
      run.memory = memory_by_default();
      return gep_forecast(model, budget, run);
    }
  return usage_error(
      fmt::format("there is no forecast of '{}'; known are pca, covariance, regress, cca, fda, sir and clip", task));
}

}  // namespace

Result<Forecasts> forecast(const ForecastOptions& options) {
  if (!(options.target_error > 0 && options.target_error < 1))
    return usage_error(fmt::format("`target_error` must lie in (0, 1), but is {}", options.target_error));
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(options.epsilon.value()));
  const auto delta = EIGENVEIL_TRY(Delta::of(options.delta.value()));
  auto request = EIGENVEIL_TRY(request_of(options, Budget{epsilon, delta, options.adjacency}));
  request.target_error = options.target_error;
  request.curves = options.curves;
  RunOptions run;
  run.threads = options.threads;
  request.threads = thread_count(run);
  request.memory = memory_by_default();
  Observer silent;
  try {
    const auto report = EIGENVEIL_TRY(make_forecast(request, options.observer != nullptr ? *options.observer : silent));
    Forecasts found{report.winner().method, report.warnings, {}, {}};
    found.json = to_json(request, report).dump();
    if (options.curves) found.svg = line_charts_svg(forecast_charts(request, report));
    return found;
  } catch (const Interrupted&) {
    return internal_error("stopped: a forecast charges nothing");
  }
}

}  // namespace eigenveil
