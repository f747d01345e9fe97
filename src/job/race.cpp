#include "race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

constexpr double kMostRows = 4096;
constexpr double kMostEpsilon = 64;

Budget with_epsilon(Budget budget, double epsilon) {
  budget.epsilon = *Epsilon::of(epsilon);
  return budget;
}

// The smallest x = start 2^j, refined to half a doubling, whose error is at most the target.
Result<std::optional<double>> smallest(double start, double most, double target,
                                       const std::function<Result<double>(double)>& error) {
  constexpr double kLeast = 1.0 / 64;
  double low = std::log2(kLeast);
  double high = std::log2(most);
  const auto at_most = EIGENVEIL_TRY(error(start * most));
  if (at_most > target) return std::optional<double>();
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    const auto there = EIGENVEIL_TRY(error(start * std::exp2(middle)));
    (there <= target ? high : low) = middle;
  }
  return std::optional(start * std::exp2(high));
}

Status add_needs(Contender& contender, const Goal& goal) {
  const auto rows = EIGENVEIL_TRY(smallest(static_cast<double>(goal.rows), kMostRows, goal.target_error, [&](double x) {
    return contender.error(static_cast<std::size_t>(std::max(1.0, x)), goal.budget);
  }));
  if (rows) contender.line.rows_needed = static_cast<std::size_t>(*rows);
  contender.line.epsilon_needed =
      EIGENVEIL_TRY(smallest(goal.budget.epsilon.value(), kMostEpsilon, goal.target_error,
                             [&](double x) { return contender.error(goal.rows, with_epsilon(goal.budget, x)); }));
  return {};
}

// Point by point for all methods, so that each sample is drawn once.
Status add_curves(std::vector<Contender>& contenders, const Goal& goal) {
  for (int j = -3; j <= 5; ++j) {
    const double x = static_cast<double>(goal.rows) * std::exp2(j);
    for (Contender& contender : contenders) {
      const auto error = EIGENVEIL_TRY(contender.error(static_cast<std::size_t>(std::max(1.0, x)), goal.budget));
      contender.line.error_by_rows.emplace_back(x, error);
    }
  }
  for (int j = -4; j <= 4; ++j) {
    const double x = goal.budget.epsilon.value() * std::exp2(j);
    for (Contender& contender : contenders) {
      const auto error = EIGENVEIL_TRY(contender.error(goal.rows, with_epsilon(goal.budget, x)));
      contender.line.error_by_epsilon.emplace_back(x, error);
    }
  }
  return {};
}

}  // namespace

Result<PlanReport> race(std::vector<Contender> contenders, const Goal& goal, Observer& observer) {
  observer.step("looking for the rows and the epsilon that are needed");
  double done = 0;
  for (Contender& contender : contenders) {
    EIGENVEIL_TRY(add_needs(contender, goal));
    observer.progress(++done / static_cast<double>(contenders.size()));
  }
  if (goal.curves) {
    observer.step("drawing curves");
    EIGENVEIL_TRY(add_curves(contenders, goal));
  }
  observer.step("done");
  PlanReport report{};
  for (Contender& contender : contenders) report.lines.push_back(std::move(contender.line));
  const auto worth = [](const PlanLine& line) { return line.lost.value_or(line.error); };
  for (std::size_t i = 1; i < report.lines.size(); ++i)
    if (worth(report.lines[i]) < 0.8 * worth(report.lines[report.best])) report.best = i;
  return report;
}

nlohmann::json lines_json(const PlanReport& report, bool curves) {
  nlohmann::json lines = nlohmann::json::array();
  for (const PlanLine& line : report.lines) {
    nlohmann::json one = {{"method", line.method},
                          {"error", line.error},
                          {"seconds", line.seconds},
                          {"sum_bytes", line.bytes},
                          {"noise", nlohmann::json::array()}};
    if (line.lost) one["lost_variance"] = *line.lost;
    one["rows_needed"] = line.rows_needed ? nlohmann::json(*line.rows_needed) : nlohmann::json();
    one["epsilon_needed"] = line.epsilon_needed ? nlohmann::json(*line.epsilon_needed) : nlohmann::json();
    for (const AnswerNoise& noise : line.noise)
      one["noise"].push_back({{"answer", noise.label},
                              {"deviation", noise.deviation},
                              {"unit", noise.search ? "rows" : "per entry, divided by rows"}});
    if (curves) {
      one["error_by_rows"] = line.error_by_rows;
      one["error_by_epsilon"] = line.error_by_epsilon;
    }
    lines.push_back(std::move(one));
  }
  return lines;
}

std::vector<LineChart> charts_of(const PlanReport& report, const Goal& goal, const std::string& error) {
  LineChart rows{fmt::format("Error against rows, epsilon = {:g}", goal.budget.epsilon.value()), "rows", error, {}};
  LineChart epsilon{fmt::format("Error against epsilon, {} rows", goal.rows), "epsilon", error, {}};
  for (const PlanLine& line : report.lines) {
    rows.lines.push_back({line.method, line.error_by_rows});
    epsilon.lines.push_back({line.method, line.error_by_epsilon});
  }
  const auto add_target = [&](LineChart& chart) {
    const auto& points = chart.lines.front().points;
    chart.lines.push_back(
        {"wanted", {{points.front().first, goal.target_error}, {points.back().first, goal.target_error}}, true});
  };
  add_target(rows);
  add_target(epsilon);
  return {rows, epsilon};
}

}  // namespace eigenveil
