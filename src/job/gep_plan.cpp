#include "eigenveil/job/gep_plan.hpp"

#include <fmt/format.h>

#include "eigenveil/job/gep.hpp"
#include "race.hpp"

namespace eigenveil {
namespace {

Goal goal_of(const GepPlanRequest& request) {
  return {request.model.rows, request.budget, request.target_error, request.curves};
}

Result<std::vector<Contender>> contenders_of(const GepPlanRequest& request, const GepSample& sample) {
  std::vector<Contender> contenders;
  for (const GepNoise noise : {GepNoise::kOnce, GepNoise::kEachStep}) {
    GepOptions options{.components = request.model.components};
    options.noise = noise;
    const std::size_t bytes =
        sums_bytes(options, request.model.columns,
                   request.model.task == GepTask::kCca ? 2 * request.model.components : request.model.classes,
                   thread_count(request.run));
    if (noise == GepNoise::kOnce && bytes > request.run.memory / 2) continue;
    const auto found = EIGENVEIL_TRY(sample.forecast(noise, request.budget, request.model.rows));
    PlanLine line{std::string(name(noise)), found.error, {}, found.seconds, bytes, found.noise, {}, {}, {}, {}};
    contenders.push_back({std::move(line), [noise, &sample](std::size_t rows, const Budget& budget) -> Result<double> {
                            const auto one = EIGENVEIL_TRY(sample.forecast(noise, budget, rows));
                            return one.error;
                          }});
  }
  return contenders;
}

}  // namespace

Result<PlanReport> make_plan(const GepPlanRequest& request, Observer& observer) {
  observer.step("simulating the methods on the public model");
  const auto sample = EIGENVEIL_TRY(GepSample::draw(request.model, thread_count(request.run), 1));
  auto contenders = EIGENVEIL_TRY(contenders_of(request, sample));
  auto report = EIGENVEIL_TRY(race(std::move(contenders), goal_of(request), observer));
  const PlanLine& best = report.lines[report.best];
  if (best.error > 0.5)
    report.warnings.push_back(
        fmt::format("The noise will drown the signal: even the best noise ({}) is forecast to have an error of {:.2g}. "
                    "Gather more rows, use fewer columns, spend more epsilon, or tighten the row bound.",
                    best.method, best.error));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.model.rows))
    report.warnings.push_back(
        fmt::format("delta {:g} is above 1 / rows: a release that publishes one row in full would satisfy it.",
                    request.budget.delta.value()));
  return report;
}

nlohmann::json to_json(const GepPlanRequest& request, const PlanReport& report) {
  return {{"task", name(request.model.task)},
          {"rows", request.model.rows},
          {"columns", request.model.columns},
          {"epsilon", request.budget.epsilon.value()},
          {"delta", request.budget.delta.value()},
          {"target_error", request.target_error},
          {"best", report.lines[report.best].method},
          {"warnings", report.warnings},
          {"methods", lines_json(report, request.curves)}};
}

std::vector<LineChart> plan_charts(const GepPlanRequest& request, const PlanReport& report) {
  return charts_of(report, goal_of(request), "forecast error, sin^2");
}

}  // namespace eigenveil
