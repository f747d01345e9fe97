#include "eigenveil/job/classes.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/classes.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kFinePerSlice = 8;
constexpr std::size_t kMostSlices = 1000;

// What differs between the two problems.
struct Task {
  const char* model;
  ClassProblem problem;
  std::optional<std::size_t> merged;
};

struct Fitted {
  ClassResult fit;
  nlohmann::json manifest;
  ColumnMap map;
  std::vector<std::string> classes;
  BoundingDiagnostics diagnostics;
};

std::vector<std::string> merged_names(const std::vector<std::string>& fine, const std::vector<double>& cuts,
                                      const std::vector<std::size_t>& first) {
  if (first.empty()) return fine;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool last = i + 1 == first.size();
    if (i == 0 && last)
      names.emplace_back("all");
    else if (i == 0)
      names.push_back(fmt::format("below {:g}", cuts[first[1] - 1]));
    else if (last)
      names.push_back(fmt::format("{:g} and more", cuts[first[i] - 1]));
    else
      names.push_back(fmt::format("{:g} to {:g}", cuts[first[i] - 1], cuts[first[i + 1] - 1]));
  }
  return names;
}

Result<Fitted> fit_task(const FitJob& job, const Task& task, const RowOptions& rows, Observer& observer) {
  const auto opened = EIGENVEIL_TRY(open_data(rows));
  const std::size_t d = opened.map.features();
  const std::size_t classes = opened.classes.size();
  ClassOptions options{gep_options(job.gep, job.privacy, job.run, d), task.problem, classes, task.merged};
  options.gep.preparation.private_mean = rows.center == Center::kPrivate;
  options.gep.preparation.private_bound = rows.private_row_bound;
  EIGENVEIL_TRY(check_job(options.gep, job.privacy, job.out, job.report));
  EIGENVEIL_TRY(check({d, {}, {1, 20}, job.privacy.adjacency}, options));

  auto data = EIGENVEIL_TRY(
      bound_data(rows, job.run, gep_memory(options.gep, job.run, d, std::max(classes, job.gep.components)), observer));
  const BoundingDiagnostics diagnostics = data.rows->diagnostics();
  options.gep.preparation = data.preparation;
  const PrivacyPlan plan = options.gep.as_in_paper ? paper_plan_classes(options, job.privacy.epsilon, job.privacy.delta)
                                                   : plan_classes(job.privacy.adjacency, options);
  auto charged = EIGENVEIL_TRY(charge(
      *data.rows,
      {plan, job.privacy, job.run, job.rows.data,
       fmt::format("{} --noise {} --components {}", task.model, name(options.gep.noise), options.gep.components)},
      observer));
  auto fit = EIGENVEIL_TRY(fit_classes(*charged.oracle, options));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");

  nlohmann::json chosen = row_options_json(rows, charged.oracle->shape().lattice.radius);
  add_choices(chosen, options.gep);
  nlohmann::json manifest =
      common_manifest(task.model, name(options.gep.noise), chosen, job.privacy, charged, fit.rows);
  add_columns(manifest, data.map);
  const GepResult& solution = fit.solution;
  add_solution(manifest, solution.ridge, solution.noise_edge, solution.values, solution.notes);
  auto names = merged_names(opened.classes, rows.class_column->cuts, fit.first);
  const bool fisher = task.problem == ClassProblem::kFisher;
  for (const std::size_t empty : fit.empty)
    manifest["warnings"].push_back(fmt::format(
        "{} '{}': its released count is no larger than noise, so it has no mean of its own and takes no part.",
        fisher ? "Class" : "Slice", names[empty]));
  return Fitted{std::move(fit), std::move(manifest), std::move(data.map), std::move(names), diagnostics};
}

Result<FitOutcome> release(const FitJob& job, Fitted fitted, const char* directions, const char* means,
                           Observer& observer) {
  const ClassResult& fit = fitted.fit;
  Model model{{{directions, fit.solution.vectors},
               {"eigenvalues", fit.solution.values, true},
               {means, fit.class_means},
               {"priors", fit.priors, true},
               {"mean", fit.mean, true},
               {"offset", fitted.map.offset(), true},
               {"scale", fitted.map.scale(), true}},
              std::move(fitted.manifest)};
  EIGENVEIL_TRY(write_release(model, job.out, job.report, job.report_options, observer));
  return FitOutcome{std::move(model), fitted.diagnostics};
}

// The public range of the response: given, or in the schema.
Result<NumericColumn> range_of(const SirJob& job, const std::string& column) {
  if (job.response_range) return *job.response_range;
  if (job.fit.rows.schema) {
    const auto schema = EIGENVEIL_TRY(read_schema(*job.fit.rows.schema));
    for (const ColumnSpec& spec : schema.columns)
      if (const auto* numeric = std::get_if<NumericColumn>(&spec.kind); numeric != nullptr && spec.name == column)
        return *numeric;
  }
  return usage_error(
      fmt::format("slices of equal width need the public range of the response '{}': give "
                  "--response-range LO:HI or a schema that has it, or give --cuts",
                  column));
}

}  // namespace

Result<FitOutcome> run_fda(const FdaJob& job, Observer& observer) {
  if (job.label.empty()) return usage_error("--label COL says which column holds the class");
  RowOptions rows = job.fit.rows;
  rows.class_column = ClassColumn{job.label, job.classes, job.drop_unlisted, {}};
  auto fitted = EIGENVEIL_TRY(fit_task(job.fit, {"fda", ClassProblem::kFisher, {}}, rows, observer));
  fitted.manifest["classes"] = fitted.classes;
  fitted.manifest["options"]["unlisted"] = job.drop_unlisted ? "drop" : "error";
  return release(job.fit, std::move(fitted), "scalings", "class_means", observer);
}

Result<FitOutcome> run_sir(const SirJob& job, Observer& observer) {
  if (job.response.empty()) return usage_error("--response COL says which column is to be explained");
  const auto facts = EIGENVEIL_TRY(file_facts(job.fit.rows));
  const auto names = EIGENVEIL_TRY(column_names(job.fit.rows.data, facts.source, {job.response}));
  Slices slices = job.slices;
  std::optional<std::size_t> merged;
  if (slices.cuts.empty()) {
    if (slices.count < 2 || slices.count > kMostSlices)
      return usage_error(fmt::format("--slices must lie between 2 and {}, but is {}", kMostSlices, slices.count));
    const auto range = EIGENVEIL_TRY(range_of(job, names.front()));
    slices.cuts = equal_cuts(range, slices.private_cuts ? kFinePerSlice * slices.count : slices.count);
    if (slices.private_cuts) merged = slices.count;
  }
  RowOptions rows = job.fit.rows;
  rows.class_column = ClassColumn{job.response, {}, false, slices.cuts};
  auto fitted = EIGENVEIL_TRY(fit_task(job.fit, {"sir", ClassProblem::kSliced, merged}, rows, observer));
  fitted.manifest["slices"] = fitted.classes;
  fitted.manifest["response"] = names.front();
  if (merged) fitted.manifest["options"]["slices"] = fmt::format("private:{}", *merged);
  return release(job.fit, std::move(fitted), "directions", "slice_means", observer);
}

}  // namespace eigenveil
