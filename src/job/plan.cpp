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

// Samples of the model at other numbers of rows; the latest of them is kept, and a single draw has to do there.
class Samples {
 public:
  explicit Samples(const PlanRequest& request, Sample own) : request_(request), own_(std::move(own)) {}
  const Sample& own() const { return own_; }
  Result<const Sample*> at(std::size_t rows) {
    if (rows == request_.model.rows) return &own_;
    if (other_ && other_->model().rows == rows) return &*other_;
    PublicModel model = request_.model;
    model.rows = rows;
    auto drawn = Sample::draw(model, request_.threads, 1, 1);
    if (!drawn) return drawn.error();
    other_.emplace(*std::move(drawn));
    return &*other_;
  }

 private:
  const PlanRequest& request_;
  Sample own_;
  std::optional<Sample> other_;
};

// A method with everything it needs to be tried at other sizes.
struct Contender {
  PlanLine line;
  std::function<Result<double>(std::size_t rows, const Budget& budget)> error;
};

Result<std::vector<Contender>> pca_contenders(const PlanRequest& request, Samples& samples) {
  const auto d = static_cast<std::size_t>(request.model.spectrum.size());
  const PcaOptions options{request.model.components, {}, request.model.sparsity};
  std::vector<PcaProgram> programs = candidates(options, d);
  if (!options.sparsity) programs.push_back({PcaMethod::kPower, options, {.rounds = 4, .filter = RowFilter::kOff}});
  const auto choice = choose(samples.own(), programs, request.budget, request.model.rows);
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
    contenders.push_back({std::move(line), [program, &samples](std::size_t rows, const Budget& budget) -> Result<double> {
                            const auto drawn = samples.at(rows);
                            if (!drawn) return drawn.error();
                            const auto one = forecast(**drawn, program, budget, rows);
                            if (!one) return one.error();
                            return one->error;
                          }});
  }
  return contenders;
}

Result<std::vector<Contender>> covariance_contenders(const PlanRequest& request, Samples& samples) {
  const auto d = static_cast<std::size_t>(request.model.spectrum.size());
  std::vector<Contender> contenders;
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked}) {
    CovarianceProgram program{method};
    program.spiked.rank = request.rank;
    const auto error = forecast_covariance(samples.own(), program, request.budget, request.model.rows);
    if (!error) return error.error();
    const auto detail = forecast(samples.own(), pca_program(program), request.budget, request.model.rows);
    if (!detail) return detail.error();
    PlanLine line{std::string(name(method)), *error, {}, detail->seconds,
                  sums_bytes(pca_program(program), d, request.threads), detail->noise, {}, {}, {}, {}};
    contenders.push_back({std::move(line), [program, &samples](std::size_t rows, const Budget& budget) -> Result<double> {
                            const auto drawn = samples.at(rows);
                            if (!drawn) return drawn.error();
                            return forecast_covariance(**drawn, program, budget, rows);
                          }});
  }
  return contenders;
}

// The smallest x = start 2^j, refined to half a doubling, whose error is at most the target.
Result<std::optional<double>> smallest(double start, double most, double target,
                                       const std::function<Result<double>(double)>& error) {
  constexpr double kLeast = 1.0 / 64;
  double low = std::log2(kLeast);
  double high = std::log2(most);
  const auto at_most = error(start * most);
  if (!at_most) return at_most.error();
  if (*at_most > target) return std::optional<double>();
  while (high - low > 0.5) {
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

// Point by point for all methods, so that each sample is drawn once.
Status add_curves(std::vector<Contender>& contenders, const PlanRequest& request) {
  for (int j = -3; j <= 5; ++j) {
    const double x = static_cast<double>(request.model.rows) * std::exp2(j);
    for (Contender& contender : contenders) {
      const auto error = contender.error(static_cast<std::size_t>(std::max(1.0, x)), request.budget);
      if (!error) return error.error();
      contender.line.error_by_rows.emplace_back(x, *error);
    }
  }
  for (int j = -4; j <= 4; ++j) {
    const double x = request.budget.epsilon.value() * std::exp2(j);
    for (Contender& contender : contenders) {
      const auto error = contender.error(request.model.rows, with_epsilon(request.budget, x));
      if (!error) return error.error();
      contender.line.error_by_epsilon.emplace_back(x, *error);
    }
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
  auto own = Sample::draw(request.model, request.threads, 1);
  if (!own) return own.error();
  Samples samples(request, *std::move(own));
  auto contenders = request.task == PlanRequest::Task::kPca ? pca_contenders(request, samples)
                                                            : covariance_contenders(request, samples);
  if (!contenders) return contenders.error();
  observer.step("looking for the rows and the epsilon that are needed");
  double done = 0;
  for (Contender& contender : *contenders) {
    EIGENVEIL_TRY(add_needs(contender, request));
    observer.progress(++done / static_cast<double>(contenders->size()));
  }
  if (request.curves) {
    observer.step("drawing curves");
    EIGENVEIL_TRY(add_curves(*contenders, request));
  }
  observer.step("done");
  PlanReport report{};
  for (Contender& contender : *contenders) report.lines.push_back(std::move(contender.line));
  const auto worth = [](const PlanLine& line) { return line.lost.value_or(line.error); };
  for (std::size_t i = 1; i < report.lines.size(); ++i)
    if (worth(report.lines[i]) < 0.8 * worth(report.lines[report.best])) report.best = i;
  add_warnings(request, samples.own(), report);
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
