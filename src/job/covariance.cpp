#include "eigenveil/job/covariance.hpp"

#include <fmt/format.h>

#include "output.hpp"

namespace eigenveil {
namespace {

// Beyond this a d x d matrix is the wrong way to a few components.
constexpr std::size_t kMostColumns = 4096;

CovarianceProgram program_for(const CovarianceJob& job, PcaMethod method, const PreparationOptions& preparation,
                              std::size_t columns) {
  CovarianceProgram program{method, preparation, job.spiked};
  if (columns > kMostColumns && job.spiked.rank && job.spiked.guarantee == Guarantee::kStrict)
    program.spiked.subspace = Subspace::kAdaptivePower;
  return program;
}

Result<std::size_t> check_job(const CovarianceJob& job) {
  const auto opened = EIGENVEIL_TRY(open_data(job.rows));
  const std::size_t d = opened.map.features();
  PreparationOptions preparation;
  preparation.private_mean = job.rows.center == Center::kPrivate;
  preparation.private_bound = job.rows.private_row_bound;
  EIGENVEIL_TRY(
      check(program_for(job, job.method.value_or(PcaMethod::kSpiked), preparation, d), d, budget_of(job.privacy)));
  if (!job.method && job.privacy.calibration == Calibration::kPaper)
    return usage_error("--calibration paper needs a --method: each paper has its own");
  EIGENVEIL_TRY(check_guess(job.guess, budget_of(job.privacy), !job.method, d));
  EIGENVEIL_TRY(check_outputs({job.out, job.report, job.report_options}, d));
  return d;
}

struct CovarianceSelection {
  CovarianceProgram program;
  nlohmann::json forecasts = nlohmann::json::array();
};

Result<CovarianceSelection> select_covariance(const CovarianceJob& job, const BoundedData& data, const Budget& budget,
                                              Observer& observer) {
  if (job.method) return CovarianceSelection{program_for(job, *job.method, data.preparation, data.rows->columns())};
  std::optional<std::size_t> count;
  if (budget.adjacency == Adjacency::kReplaceOne) count = data.rows->rows();
  const PcaOptions options{job.spiked.rank.value_or(1), {}, {}};
  const auto model =
      EIGENVEIL_TRY(public_model(job.guess, count, data.rows->columns(), data.rows->lattice().radius, options));
  observer.step("forecasting methods on a public model");
  const auto sample = EIGENVEIL_TRY(Sample::draw(model, thread_count(job.run), 1));
  CovarianceSelection selection;
  double best = 0;
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked}) {
    const auto error = EIGENVEIL_TRY(
        forecast_covariance(sample, program_for(job, method, {}, data.rows->columns()), budget, model.rows));
    selection.forecasts.push_back({{"method", name(method)}, {"relative_error", error}});
    if (method == PcaMethod::kGram || error < best) {
      best = error;
      selection.program = program_for(job, method, data.preparation, data.rows->columns());
    }
  }
  return selection;
}

}  // namespace

Result<PcaOutcome> run_covariance(const CovarianceJob& job, Observer& observer) {
  const auto d = EIGENVEIL_TRY(check_job(job));
  const PcaProgram sized = pca_program(program_for(job, job.method.value_or(PcaMethod::kGram), {}, d));
  auto data = EIGENVEIL_TRY(bound_data(job.rows, job.run, sums_bytes(sized, d, thread_count(job.run)), observer));
  const BoundingDiagnostics diagnostics = data.rows->diagnostics();

  const Budget budget = budget_of(job.privacy);
  const auto selection = EIGENVEIL_TRY(select_covariance(job, data, budget, observer));
  const CovarianceProgram& program = selection.program;
  auto charged =
      EIGENVEIL_TRY(charge(*data.rows,
                           {draft(pca_program(program), budget), job.privacy, job.run, job.rows.data,
                            fmt::format("covariance --method {}{}", name(program.method),
                                        program.method == PcaMethod::kSpiked ? guarantee_flag(program.spiked) : "")},
                           observer));
  const auto fitted = EIGENVEIL_TRY(fit(program, budget, *charged.oracle));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");

  nlohmann::json options = row_options_json(job.rows, charged.oracle->shape().lattice.radius);
  options.update(program_json(pca_program(program), budget.calibration));
  options.erase("components");
  nlohmann::json manifest =
      common_manifest("covariance", name(program.method), std::move(options), job.privacy, charged, fitted.pca.rows);
  add_columns(manifest, data.map);
  manifest["noise_edge"] = fitted.pca.noise_edge;
  if (program.method == PcaMethod::kSpiked)
    manifest["error_rates"] = spiked_rates_json(fitted.pca, fitted.noise_variance, budget);
  if (fitted.assumed) add_assumed(manifest, *fitted.assumed);
  if (!selection.forecasts.empty())
    manifest["planner"] = {{"chosen", name(program.method)}, {"forecasts", selection.forecasts}};
  Model model{{{"components", fitted.pca.components.transpose()},
               {"eigenvalues", fitted.pca.eigenvalues, true},
               {"noise_variance", Vector::Constant(1, fitted.noise_variance), true},
               {"mean", fitted.pca.mean, true},
               {"offset", data.map.offset(), true},
               {"scale", data.map.scale(), true}},
              std::move(manifest)};
  if (program.method == PcaMethod::kGram || job.dense) model.arrays.push_back({"covariance", fitted.dense()});
  EIGENVEIL_TRY(write_outputs(model, {job.out, job.report, job.report_options}, observer));
  return PcaOutcome{std::move(model), diagnostics};
}

}  // namespace eigenveil
