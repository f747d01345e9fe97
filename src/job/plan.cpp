#include "eigenveil/job/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "race.hpp"

namespace eigenveil {
namespace {

Goal goal_of(const PlanRequest& request) {
  return {request.model.rows, request.budget, request.target_error, request.curves};
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
    auto drawn = EIGENVEIL_TRY(Sample::draw(model, request_.threads, 1, 1));
    other_.emplace(std::move(drawn));
    return &*other_;
  }

 private:
  const PlanRequest& request_;
  Sample own_;
  std::optional<Sample> other_;
};

Result<std::vector<Contender>> pca_contenders(const PlanRequest& request, Samples& samples) {
  const auto d = static_cast<std::size_t>(request.model.spectrum.size());
  const PcaOptions options{request.model.components, {}, request.model.sparsity};
  std::vector<PcaProgram> programs = candidates(options, d);
  if (!options.sparsity) programs.push_back({PcaMethod::kPower, options, {.rounds = 4, .filter = RowFilter::kOff}});
  const auto choice = EIGENVEIL_TRY(choose(samples.own(), programs, request.budget, request.model.rows));
  std::vector<Contender> contenders;
  for (const PcaMethod method :
       {PcaMethod::kGram, PcaMethod::kAdaptivePower, PcaMethod::kSparsePower, PcaMethod::kPower}) {
    const Forecast* best = nullptr;
    for (const Forecast& one : choice.all)
      if (one.program.method == method && (best == nullptr || one.lost < best->lost)) best = &one;
    if (best == nullptr) continue;
    const PcaProgram program = best->program;
    PlanLine line{describe(program), best->error, best->lost, best->seconds, best->bytes, best->noise, {}, {}, {}, {}};
    contenders.push_back(
        {std::move(line), [program, &samples](std::size_t rows, const Budget& budget) -> Result<double> {
           const auto drawn = EIGENVEIL_TRY(samples.at(rows));
           const auto one = EIGENVEIL_TRY(forecast(*drawn, program, budget, rows));
           return one.error;
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
    const auto error = EIGENVEIL_TRY(forecast_covariance(samples.own(), program, request.budget, request.model.rows));
    const auto detail =
        EIGENVEIL_TRY(forecast(samples.own(), pca_program(program), request.budget, request.model.rows));
    PlanLine line{std::string(name(method)),
                  error,
                  {},
                  detail.seconds,
                  sums_bytes(pca_program(program), d, request.threads),
                  detail.noise,
                  {},
                  {},
                  {},
                  {}};
    contenders.push_back(
        {std::move(line), [program, &samples](std::size_t rows, const Budget& budget) -> Result<double> {
           const auto drawn = EIGENVEIL_TRY(samples.at(rows));
           return forecast_covariance(*drawn, program, budget, rows);
         }});
  }
  return contenders;
}

void add_warnings(const PlanRequest& request, const Sample& sample, PlanReport& report) {
  const PlanLine& best = report.lines[report.best];
  if (best.error > 0.5)
    report.warnings.push_back(fmt::format(
        "The noise will drown the signal: even the best method ({}) is forecast to have an error of {:.2g}. "
        "Ask for fewer components, gather more rows, spend more epsilon, or tighten the row bound.",
        best.method, best.error));
  if (sample.rows() < request.model.rows && sample.rows() < static_cast<std::size_t>(request.model.spectrum.size()))
    report.warnings.push_back(fmt::format(
        "The forecast simulates {} of the {} rows, fewer than there are columns: the true error will be lower.",
        sample.rows(), request.model.rows));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.model.rows))
    report.warnings.push_back(
        fmt::format("delta {:g} is above 1 / rows: a release that publishes one row in full would satisfy it.",
                    request.budget.delta.value()));
}

}  // namespace

Result<PlanReport> make_plan(const PlanRequest& request, Observer& observer) {
  observer.step("simulating the methods on the public model");
  auto own = EIGENVEIL_TRY(Sample::draw(request.model, request.threads, 1));
  Samples samples(request, std::move(own));
  auto contenders = EIGENVEIL_TRY(request.task == PlanRequest::Task::kPca ? pca_contenders(request, samples)
                                                                          : covariance_contenders(request, samples));
  auto report = EIGENVEIL_TRY(race(std::move(contenders), goal_of(request), observer));
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
                           {"methods", lines_json(report, request.curves)}};
  return object;
}

std::vector<LineChart> plan_charts(const PlanRequest& request, const PlanReport& report) {
  const std::string error =
      request.task == PlanRequest::Task::kPca ? "forecast error, sin^2" : "forecast relative error";
  return charts_of(report, goal_of(request), error);
}

}  // namespace eigenveil
