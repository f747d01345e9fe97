#include "eigenveil/job/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace eigenveil {
namespace {

constexpr double kMostRows = 4096;
constexpr double kMostEpsilon = 64;

Budget with_epsilon(Budget budget, double epsilon) {
  budget.epsilon = *Epsilon::of(epsilon);
  return budget;
}

// A method with everything it needs to be tried at other sizes.
struct Contender {
  PlanLine line;
  std::function<Result<double>(std::size_t rows, const Budget& budget)> error;
};

Result<std::vector<Contender>> pca_contenders(const PlanRequest& request, const Sample& sample) {
  const auto d = static_cast<std::size_t>(request.model.spectrum.size());
  const PcaOptions options{request.model.components, {}, request.model.sparsity};
  std::vector<PcaProgram> programs = candidates(options, d);
  if (!options.sparsity) programs.push_back({PcaMethod::kPower, options, {.rounds = 4, .filter = RowFilter::kOff}});
  const auto choice = choose(sample, programs, request.budget, request.model.rows);
  if (!choice) return choice.error();
  std::vector<Contender> contenders;
  for (const PcaMethod method :
       {PcaMethod::kGram, PcaMethod::kAdaptivePower, PcaMethod::kSparsePower, PcaMethod::kPower}) {
    const Forecast* best = nullptr;
    for (const Forecast& one : choice->all)
      if (one.program.method == method && (best == nullptr || one.lost < best->lost)) best = &one;
    if (best == nullptr) continue;
    const PcaProgram program = best->program;
    PlanLine line{describe(program), best->error, best->lost, best->seconds, best->bytes, best->noise, {}, {}, {}, {}};
    contenders.push_back({std::move(line), [program, &sample](std::size_t rows, const Budget& budget) -> Result<double> {
                            const auto one = forecast(sample, program, budget, rows);
                            if (!one) return one.error();
                            return one->error;
                          }});
  }
  return contenders;
}

Result<std::vector<Contender>> covariance_contenders(const PlanRequest& request, const Sample& sample) {
  const auto d = static_cast<std::size_t>(request.model.spectrum.size());
  std::vector<Contender> contenders;
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked}) {
    CovarianceProgram program{method};
    program.spiked.rank = request.rank;
    const auto error = forecast_covariance(sample, program, request.budget, request.model.rows);
    if (!error) return error.error();
    const auto detail = forecast(sample, pca_program(program), request.budget, request.model.rows);
    if (!detail) return detail.error();
    PlanLine line{std::string(name(method)), *error, {}, detail->seconds,
                  sums_bytes(pca_program(program), d, request.threads), detail->noise, {}, {}, {}, {}};
    contenders.push_back({std::move(line), [program, &sample](std::size_t rows, const Budget& budget) {
                            return forecast_covariance(sample, program, budget, rows);
                          }});
  }
  return contenders;
}

// The smallest x = start 2^j, refined to a quarter of a doubling, whose error is at most the target.
Result<std::optional<double>> smallest(double start, double most, double target,
                                       const std::function<Result<double>(double)>& error) {
  constexpr double kLeast = 1.0 / 64;
  double low = std::log2(kLeast);
  double high = std::log2(most);
  const auto at_most = error(start * most);
  if (!at_most) return at_most.error();
  if (*at_most > target) return std::optional<double>();
  while (high - low > 0.25) {
    const double middle = (low + high) / 2;
    const auto there = error(start * std::exp2(middle));
    if (!there) return there.error();
    (*there <= target ? high : low) = middle;
  }
  return std::optional(start * std::exp2(high));
}

Status add_needs(Contender& contender, const PlanRequest& request) {
  const auto n = static_cast<double>(request.model.rows);
  const auto rows = smallest(n, kMostRows, request.target_error, [&](double x) {
    return contender.error(static_cast<std::size_t>(std::max(1.0, x)), request.budget);
  });
  if (!rows) return rows.error();
  if (*rows) contender.line.rows_needed = static_cast<std::size_t>(**rows);
  const auto epsilon =
      smallest(request.budget.epsilon.value(), kMostEpsilon, request.target_error,
               [&](double x) { return contender.error(request.model.rows, with_epsilon(request.budget, x)); });
  if (!epsilon) return epsilon.error();
  contender.line.epsilon_needed = *epsilon;
  return {};
}

Status add_curves(Contender& contender, const PlanRequest& request) {
  for (int j = -4; j <= 6; ++j) {
    const double x = static_cast<double>(request.model.rows) * std::exp2(j);
    const auto error = contender.error(static_cast<std::size_t>(std::max(1.0, x)), request.budget);
    if (!error) return error.error();
    contender.line.error_by_rows.emplace_back(x, *error);
  }
  for (int j = -4; j <= 4; ++j) {
    const double x = request.budget.epsilon.value() * std::exp2(j);
    const auto error = contender.error(request.model.rows, with_epsilon(request.budget, x));
    if (!error) return error.error();
    contender.line.error_by_epsilon.emplace_back(x, *error);
  }
  return {};
}

void add_warnings(const PlanRequest& request, const Sample& sample, PlanReport& report) {
  const PlanLine& best = report.lines[report.best];
  if (best.error > 0.5)
    report.warnings.push_back(
        fmt::format("The noise will drown the signal: even the best method ({}) is forecast to have an error of {:.2g}. "
                    "Ask for fewer components, gather more rows, spend more epsilon, or tighten the row bound.",
                    best.method, best.error));
  if (sample.rows() < request.model.rows && sample.rows() < static_cast<std::size_t>(request.model.spectrum.size()))
    report.warnings.push_back(
        fmt::format("The forecast simulates {} of the {} rows, fewer than there are columns: the true error will be lower.",
                    sample.rows(), request.model.rows));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.model.rows))
    report.warnings.push_back(
        fmt::format("delta {:g} is above 1 / rows: a release that publishes one row in full would satisfy it.",
                    request.budget.delta.value()));
}

}  // namespace

Result<PlanReport> make_plan(const PlanRequest& request, Observer& observer) {
  observer.step("simulating the methods on the public model");
  const auto sample = Sample::draw(request.model, request.threads, 1);
  if (!sample) return sample.error();
  auto contenders = request.task == PlanRequest::Task::kPca ? pca_contenders(request, *sample)
                                                            : covariance_contenders(request, *sample);
  if (!contenders) return contenders.error();
  observer.step("looking for the rows and the epsilon that are needed");
  double done = 0;
  for (Contender& contender : *contenders) {
    EIGENVEIL_TRY(add_needs(contender, request));
    if (request.curves) EIGENVEIL_TRY(add_curves(contender, request));
    observer.progress(++done / static_cast<double>(contenders->size()));
  }
  observer.step("done");
  PlanReport report{};
  for (Contender& contender : *contenders) report.lines.push_back(std::move(contender.line));
  const auto worth = [](const PlanLine& line) { return line.lost.value_or(line.error); };
  for (std::size_t i = 1; i < report.lines.size(); ++i)
    if (worth(report.lines[i]) < 0.8 * worth(report.lines[report.best])) report.best = i;
  add_warnings(request, *sample, report);
  return report;
}

nlohmann::json to_json(const PlanRequest& request, const PlanReport& report) {
  nlohmann::json object = {{"task", request.task == PlanRequest::Task::kPca ? "pca" : "covariance"},
                           {"rows", request.model.rows},
                           {"columns", request.model.spectrum.size()},
                           {"epsilon", request.budget.epsilon.value()},
                           {"delta", request.budget.delta.value()},
                           {"target_error", request.target_error},
                           {"best", report.lines[report.best].method},
                           {"warnings", report.warnings},
                           {"methods", nlohmann::json::array()}};
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
    if (request.curves) {
      one["error_by_rows"] = line.error_by_rows;
      one["error_by_epsilon"] = line.error_by_epsilon;
    }
    object["methods"].push_back(std::move(one));
  }
  return object;
}

std::vector<LineChart> plan_charts(const PlanRequest& request, const PlanReport& report) {
  const std::string error = request.task == PlanRequest::Task::kPca ? "forecast error, sin^2" : "forecast relative error";
  LineChart rows{fmt::format("Error against rows, epsilon = {:g}", request.budget.epsilon.value()), "rows", error, {}};
  LineChart epsilon{fmt::format("Error against epsilon, {} rows", request.model.rows), "epsilon", error, {}};
  for (const PlanLine& line : report.lines) {
    rows.lines.push_back({line.method, line.error_by_rows});
    epsilon.lines.push_back({line.method, line.error_by_epsilon});
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
