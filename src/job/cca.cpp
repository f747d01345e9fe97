#include "eigenveil/job/cca.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/cca.hpp"

namespace eigenveil {
namespace {

// The rows with the columns of x first, then those of y.
struct Chosen {
  RowOptions rows;
  std::size_t raw_x;
};

Result<Chosen> choose_columns(const CcaJob& job) {
  if (job.x_columns.empty() || job.y_columns.empty())
    return usage_error("--x-columns and --y-columns say which columns are the two views: give both");
  if (!job.fit.rows.source.columns.empty())
    return usage_error("--columns does not go with --x-columns and --y-columns, which choose columns already");
  auto facts = EIGENVEIL_TRY(file_facts(job.fit.rows));
  Chosen chosen{job.fit.rows, 0};
  std::vector<std::string> both;
  for (const auto* list : {&job.x_columns, &job.y_columns}) {
    const auto names = EIGENVEIL_TRY(column_names(job.fit.rows.data, facts.source, *list));
    if (list == &job.x_columns) chosen.raw_x = names.size();
    both.insert(both.end(), names.begin(), names.end());
  }
  (chosen.rows.schema ? chosen.rows.schema_columns : chosen.rows.source.columns) = both;
  return chosen;
}

std::size_t features_of(const ColumnMap& map, std::size_t raw_columns) {
  std::size_t features = 0;
  for (std::size_t i = 0; i < raw_columns; ++i) {
    const auto* categorical = std::get_if<CategoricalColumn>(&map.specs()[i].kind);
    features += categorical != nullptr ? categorical->values.size() : 1;
  }
  return features;
}

nlohmann::json manifest_of(const CcaJob& job, const ChargedOracle& charged, const ColumnMap& map, const CcaResult& fit,
                           const CcaOptions& options) {
  nlohmann::json chosen = row_options_json(job.fit.rows, charged.oracle->shape().lattice.radius);
  add_choices(chosen, options.gep);
  nlohmann::json manifest = common_manifest("cca", name(options.gep.noise), chosen, job.fit.privacy, charged, fit.rows);
  add_columns(manifest, map);
  manifest["x_features"] = options.x_columns;
  add_solution(manifest, fit.ridge, fit.noise_edge, fit.correlations, fit.notes);
  return manifest;
}

}  // namespace

Result<FitOutcome> run_cca(const CcaJob& job, Observer& observer) {
  const auto chosen = EIGENVEIL_TRY(choose_columns(job));
  const auto opened = EIGENVEIL_TRY(open_data(chosen.rows));
  const std::size_t d = opened.map.features();
  CcaOptions options{gep_options(job.fit.gep, job.fit.privacy, job.fit.run, d), features_of(opened.map, chosen.raw_x)};
  options.gep.preparation.private_mean = chosen.rows.center == Center::kPrivate;
  options.gep.preparation.private_bound = chosen.rows.private_row_bound;
  EIGENVEIL_TRY(check_job(options.gep, job.fit.privacy, job.fit.out, job.fit.report));
  EIGENVEIL_TRY(check({d, {}, {1, 20}, job.fit.privacy.adjacency}, options));

  auto data = EIGENVEIL_TRY(bound_data(chosen.rows, job.fit.run,
                                       gep_memory(options.gep, job.fit.run, d, 2 * options.gep.components), observer));
  const BoundingDiagnostics diagnostics = data.rows->diagnostics();
  options.gep.preparation = data.preparation;
  const PrivacyPlan plan = options.gep.as_in_paper
                               ? paper_plan_cca(options, job.fit.privacy.epsilon, job.fit.privacy.delta)
                               : plan_cca(job.fit.privacy.adjacency, options);
  auto charged = EIGENVEIL_TRY(
      charge(*data.rows,
             {plan, job.fit.privacy, job.fit.run, job.fit.rows.data,
              fmt::format("cca --noise {} --components {}", name(options.gep.noise), options.gep.components)},
             observer));
  const auto fit = EIGENVEIL_TRY(fit_cca(*charged.oracle, options));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");

  Model model{{{"x_weights", fit.x_weights},
               {"y_weights", fit.y_weights},
               {"correlations", fit.correlations, true},
               {"mean", fit.mean, true},
               {"offset", data.map.offset(), true},
               {"scale", data.map.scale(), true}},
              manifest_of(job, charged, data.map, fit, options)};
  EIGENVEIL_TRY(write_release(model, job.fit.out, job.fit.report, job.fit.report_options, observer));
  return FitOutcome{std::move(model), diagnostics};
}

}  // namespace eigenveil
