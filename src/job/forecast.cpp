// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

constexpr double kMostRows = 4096;
constexpr double kMostEpsilon = 64;

/// Contenders on the model's rows, whatever their number and the budget.
class Arena {
 public:
  explicit Arena(const ForecastRequest& request) : request_(request), samples_(*request.model, request.threads) {}

  Result<const Sample*> own() { return samples_.at(rows()); }
  std::size_t rows() const { return request_.model->rows(); }

  Budget budget_for(const Contender& contender, Epsilon epsilon) const {
    Budget budget = request_.budget;
    budget.epsilon = epsilon;
    if (contender.adjacency) budget.adjacency = *contender.adjacency;
    return budget;
  }
  Result<Forecast> run(const Contender& contender, std::size_t rows, Epsilon epsilon) {
    const Sample* sample = EIGENVEIL_TRY(samples_.at(rows));
    return forecast(*contender.make(rows), *sample, budget_for(contender, epsilon), rows);
  }
  Result<Forecast> run(const Contender& contender) { return run(contender, rows(), request_.budget.epsilon); }
  Result<double> error_with_rows(const Contender& contender, double rows) {
    const auto count = static_cast<std::size_t>(std::max(1.0, rows));
    return EIGENVEIL_TRY(run(contender, count, request_.budget.epsilon)).error;
  }
  Result<double> error_with_epsilon(const Contender& contender, double epsilon) {
    return EIGENVEIL_TRY(run(contender, rows(), EIGENVEIL_TRY(Epsilon::of(epsilon)))).error;
  }

 private:
  const ForecastRequest& request_;
  Samples samples_;
};

/// The best contender of a method, and what was found out about it.
struct Finalist {
  const Contender* contender;
  std::string method;
  ForecastLine line;
};

// Impossible options are refused before anything is simulated.
Status check(const ForecastRequest& request, const Arena& arena) {
  EIGENVEIL_TRY(request.model->check());
  for (const Contender& one : request.contenders) {
    const Budget budget = arena.budget_for(one, request.budget.epsilon);
    const RowsShape shape{request.model->columns(), request.model->rows(), {1, 20}, budget.adjacency};
    EIGENVEIL_TRY(one.make(request.model->rows())->check(shape, budget));
  }
  return {};
}

Result<std::vector<Finalist>> finalists_of(const ForecastRequest& request, Arena& arena) {
  std::vector<Finalist> finalists;
  for (const Contender& one : request.contenders) {
    Finalist next{&one, one.make(arena.rows())->method(), {}};
    next.line.forecast = EIGENVEIL_TRY(arena.run(one));
    const auto rival = std::find_if(finalists.begin(), finalists.end(),
                                    [&](const Finalist& other) { return other.method == next.method; });
    if (rival == finalists.end())
      finalists.push_back(std::move(next));
    else if (next.line.forecast.worth() < rival->line.forecast.worth())
      *rival = std::move(next);
  }
  return finalists;
}

/// How far from what was asked a search goes.
struct Reach {
  double least = 1.0 / 64;
  double most;
};

// Not beyond what an epsilon may be.
Reach reach_of(Epsilon epsilon) {
  Reach reach{.most = kMostEpsilon};
  while (!Epsilon::of(epsilon.value() * reach.least)) reach.least *= 2;
  while (!Epsilon::of(epsilon.value() * reach.most)) reach.most /= 2;
  return reach;
}

// The smallest x = start 2^j, refined to half a doubling, whose error is at most the target.
Result<std::optional<double>> smallest(double start, const Reach& reach, double target,
                                       const std::function<Result<double>(double)>& error) {
  double low = std::log2(reach.least);
  double high = std::log2(reach.most);
  const auto at_most = EIGENVEIL_TRY(error(start * reach.most));
  if (at_most > target) return std::optional<double>();
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    const auto there = EIGENVEIL_TRY(error(start * std::exp2(middle)));
    (there <= target ? high : low) = middle;
  }
  return std::optional(start * std::exp2(high));
}

Status add_needs(Finalist& one, Arena& arena, const ForecastRequest& request) {
  const auto rows = EIGENVEIL_TRY(smallest(static_cast<double>(arena.rows()), {.most = kMostRows}, request.target_error,
                                           [&](double x) { return arena.error_with_rows(*one.contender, x); }));
  if (rows) one.line.rows_needed = static_cast<std::size_t>(*rows);
  const Epsilon epsilon = request.budget.epsilon;
  one.line.epsilon_needed =
      EIGENVEIL_TRY(smallest(epsilon.value(), reach_of(epsilon), request.target_error,
                             [&](double x) { return arena.error_with_epsilon(*one.contender, x); }));
  return {};
}

// Point by point for all methods, so that each sample is drawn once.
Status add_curves(std::vector<Finalist>& finalists, Arena& arena, const ForecastRequest& request) {
  for (int j = -3; j <= 5; ++j) {
    const double x = static_cast<double>(arena.rows()) * std::exp2(j);
    for (Finalist& one : finalists)
      one.line.error_by_rows.emplace_back(x, EIGENVEIL_TRY(arena.error_with_rows(*one.contender, x)));
  }
  for (int j = -4; j <= 4; ++j) {
    const double x = request.budget.epsilon.value() * std::exp2(j);
    if (!Epsilon::of(x)) continue;
    for (Finalist& one : finalists)
      one.line.error_by_epsilon.emplace_back(x, EIGENVEIL_TRY(arena.error_with_epsilon(*one.contender, x)));
  }
  return {};
}

std::vector<std::string> warnings_of(const ForecastRequest& request, const Forecast& best, const Sample& sample) {
  std::vector<std::string> warnings;
  if (best.error > 0.5)
    warnings.push_back(
        fmt::format("The noise will drown the signal: even the best {} ({}) is forecast to have an error of {:.2g}. {}",
                    request.kind_of_contender, best.method, best.error, request.remedies));
  for (std::string& note : request.model->notes(sample)) warnings.push_back(std::move(note));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.model->rows()))
    warnings.push_back(
        fmt::format("delta {:g} is above 1 / rows: a release that publishes one row in full would satisfy it.",
                    request.budget.delta.value()));
  warnings.insert(warnings.end(), request.notes.begin(), request.notes.end());
  return warnings;
}

nlohmann::json line_json(const ForecastLine& line, bool curves) {
  const Forecast& found = line.forecast;
  nlohmann::json one = {{"method", found.method},
                        {"error", found.error},
                        {"seconds", found.seconds},
                        {"sum_bytes", found.bytes},
                        {"noise", nlohmann::json::array()}};
  if (found.lost) one["lost_variance"] = *found.lost;
  one["rows_needed"] = line.rows_needed ? nlohmann::json(*line.rows_needed) : nlohmann::json();
  one["epsilon_needed"] = line.epsilon_needed ? nlohmann::json(*line.epsilon_needed) : nlohmann::json();
  for (const AnswerNoise& noise : found.noise)
    one["noise"].push_back({{"answer", noise.label},
                            {"deviation", noise.deviation},
                            {"unit", noise.search ? "rows" : "per entry, divided by rows"}});
  if (curves) {
    one["error_by_rows"] = line.error_by_rows;
    one["error_by_epsilon"] = line.error_by_epsilon;
  }
  return one;
}

}  // namespace

Result<ForecastReport> make_forecast(const ForecastRequest& request, Observer& observer) {
  Arena arena(request);
  EIGENVEIL_TRY(check(request, arena));
  observer.step("simulating the methods on the public model");
  auto finalists = EIGENVEIL_TRY(finalists_of(request, arena));
  const Sample* sample = EIGENVEIL_TRY(arena.own());
  observer.step("looking for the rows and the epsilon that are needed");
  double done = 0;
  for (Finalist& one : finalists) {
    EIGENVEIL_TRY(add_needs(one, arena, request));
    observer.progress(++done / static_cast<double>(finalists.size()));
  }
  if (request.curves) {
    observer.step("drawing curves");
    EIGENVEIL_TRY(add_curves(finalists, arena, request));
  }
  observer.step("done");
  std::vector<Forecast> forecasts;
  for (const Finalist& one : finalists) forecasts.push_back(one.line.forecast);
  ForecastReport report{{}, best_of(forecasts), {}, measure_of(request.task).unit};
  for (Finalist& one : finalists) report.lines.push_back(std::move(one.line));
  report.warnings = warnings_of(request, report.winner(), *sample);
  return report;
}

nlohmann::json to_json(const ForecastRequest& request, const ForecastReport& report) {
  nlohmann::json object = {{"task", request.task},
                           {"rows", request.model->rows()},
                           {"columns", request.model->columns()},
                           {"epsilon", request.budget.epsilon.value()},
                           {"delta", request.budget.delta.value()},
                           {"target_error", request.target_error},
                           {"best", report.winner().method},
                           {"warnings", report.warnings},
                           {"methods", nlohmann::json::array()}};
  if (!request.facts.is_null()) object.update(request.facts);
  for (const ForecastLine& line : report.lines) object["methods"].push_back(line_json(line, request.curves));
  return object;
}

std::vector<LineChart> forecast_charts(const ForecastRequest& request, const ForecastReport& report) {
  const char* error = report.unit.axis;
  LineChart rows{fmt::format("Error against rows, epsilon = {:g}", request.budget.epsilon.value()), "rows", error, {}};
  LineChart epsilon{fmt::format("Error against epsilon, {} rows", request.model->rows()), "epsilon", error, {}};
  for (const ForecastLine& line : report.lines) {
    rows.lines.push_back({line.forecast.method, line.error_by_rows});
    epsilon.lines.push_back({line.forecast.method, line.error_by_epsilon});
  }
  const auto add_target = [&](LineChart& chart) {
    const auto& points = chart.lines.front().points;
    chart.lines.push_back(
        {"wanted", {{points.front().first, request.target_error}, {points.back().first, request.target_error}}, true});
  };
  add_target(rows);
  add_target(epsilon);
  return {rows, epsilon};
}

}  // namespace eigenveil
