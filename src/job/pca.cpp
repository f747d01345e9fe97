#include "eigenveil/job/pca.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "output.hpp"

namespace eigenveil {
namespace {

PcaProgram program_for(const PcaJob& job, PcaMethod method, const PreparationOptions& preparation) {
  PcaProgram program{method, {job.components, preparation, job.sparsity}, job.power, job.spiked};
  program.spiked.power = job.power;
  return program;
}

// Everything the user left to the planner, best first guess included.
std::vector<PcaProgram> programs_for(const PcaJob& job, const PreparationOptions& preparation, std::size_t columns) {
  const PcaOptions options{job.components, preparation, job.sparsity};
  if (!job.method) {
    std::vector<PcaProgram> programs;
    for (PcaProgram program : candidates(options, columns)) {
      const std::size_t rounds = program.power.rounds;
      program.power = job.power;
      if (job.choose_rounds) program.power.rounds = rounds;
      if (programs.empty() || describe(programs.back()) != describe(program)) programs.push_back(program);
    }
    return programs;
  }
  const PcaProgram given = program_for(job, *job.method, preparation);
  std::vector<PcaProgram> programs = {given};
  const bool rows_known =
      job.guess.expected_rows || (job.privacy.adjacency == Adjacency::kReplaceOne && !job.rows.data.empty());
  if (*job.method == PcaMethod::kSpiked && job.spiked.guarantee == Guarantee::kStrict && job.spiked.rank && rows_known)
    for (const std::size_t rounds : {4, 8}) {
      programs.push_back(given);
      programs.back().spiked.subspace = Subspace::kAdaptivePower;
      programs.back().spiked.power.rounds = rounds;
    }
  const bool iterates = *job.method != PcaMethod::kGram && *job.method != PcaMethod::kSpiked;
  if (iterates && job.choose_rounds) {
    programs.clear();
    for (const std::size_t rounds : {4, 8, 16}) {
      programs.push_back(given);
      programs.back().power.rounds = rounds;
    }
  }
  return programs;
}

// Columns, or why the job cannot be: everything that can be refused without reading a row.
Result<std::size_t> check_job(const PcaJob& job) {
  const auto opened = EIGENVEIL_TRY(open_data(job.rows));
  const std::size_t d = opened.map.features();
  PreparationOptions preparation;
  preparation.private_mean = job.rows.center == Center::kPrivate;
  preparation.private_bound = job.rows.private_row_bound;
  const PcaMethod method = job.method.value_or(job.sparsity ? PcaMethod::kSparsePower : PcaMethod::kAdaptivePower);
  if (auto fits = check(program_for(job, method, preparation), d, budget_of(job.privacy)); !fits) {
    Error error = fits.error();
    if (error.code == ErrorCode::kBadInput)
      error.message = (job.rows.data.empty() ? "the columns" : job.rows.data) + ": " + error.message;
    return error;
  }
  if (!job.method && job.privacy.calibration == Calibration::kPaper)
    return usage_error("--calibration paper needs a --method: each paper has its own");
  EIGENVEIL_TRY(check_guess(job.guess, budget_of(job.privacy), !job.method || job.choose_rounds, d));
  EIGENVEIL_TRY(check_outputs({job.out, job.report, job.report_options}, d));
  return d;
}

nlohmann::json pca_manifest(const PcaJob& job, const Selection& selection, const ChargedOracle& charged,
                            const BoundedData& data, const PcaFit& fit) {
  nlohmann::json options = row_options_json(job.rows, charged.oracle->shape().lattice.radius);
  options.update(program_json(selection.program, job.privacy.calibration));
  nlohmann::json manifest =
      common_manifest("pca", name(selection.program.method), std::move(options), job.privacy, charged, fit.pca.rows);
  add_columns(manifest, data.map);
  manifest["noise_edge"] = fit.pca.noise_edge;
  if (fit.noise_variance)
    manifest["error_rates"] = spiked_rates_json(fit.pca, *fit.noise_variance, budget_of(job.privacy));
  if (fit.assumed) add_assumed(manifest, *fit.assumed);
  if (!selection.forecasts.empty())
    manifest["planner"] = {{"chosen", describe(selection.program)}, {"forecasts", selection.forecasts}};
  const auto drowned = (fit.pca.eigenvalues.array() <= fit.pca.noise_edge).count();
  if (drowned > 0)
    manifest["warnings"].push_back(
        fmt::format("{} of the {} components have eigenvalues no larger than noise alone would give: they say nothing "
                    "about the data. Ask for fewer components, or spend more budget.",
                    drowned, fit.pca.eigenvalues.size()));
  return manifest;
}

}  // namespace

Result<PcaOutcome> run_pca(const PcaJob& job, Observer& observer) {
  const auto d = EIGENVEIL_TRY(check_job(job));
  const int threads = thread_count(job.run);
  std::size_t reserved = 0;
  for (const PcaProgram& program : programs_for(job, {}, d))
    reserved = std::max(reserved, sums_bytes(program, d, threads));
  auto data = EIGENVEIL_TRY(bound_data(job.rows, job.run, reserved, observer));
  const BoundingDiagnostics diagnostics = data.rows->diagnostics();

  const Budget budget = budget_of(job.privacy);
  const std::vector<PcaProgram> programs = programs_for(job, data.preparation, d);
  auto selection = EIGENVEIL_TRY(select(programs, job.guess, *data.rows, budget, threads, observer));
  const PcaProgram& program = selection.program;
  auto charged =
      EIGENVEIL_TRY(charge(*data.rows,
                           {draft(program, budget), job.privacy, job.run, job.rows.data,
                            fmt::format("pca --method {} --components {}{}", name(program.method), job.components,
                                        program.method == PcaMethod::kSpiked ? guarantee_flag(program.spiked) : "")},
                           observer));
  const auto fitted = EIGENVEIL_TRY(fit(program, budget, *charged.oracle));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");

  Model model{{{"components", fitted.pca.components.transpose()},
               {"eigenvalues", fitted.pca.eigenvalues, true},
               {"mean", fitted.pca.mean, true},
               {"offset", data.map.offset(), true},
               {"scale", data.map.scale(), true}},
              pca_manifest(job, selection, charged, data, fitted)};
  if (fitted.noise_variance)
    model.arrays.push_back({"noise_variance", Vector::Constant(1, *fitted.noise_variance), true});
  EIGENVEIL_TRY(write_outputs(model, {job.out, job.report, job.report_options}, observer));
  return PcaOutcome{std::move(model), diagnostics};
}

}  // namespace eigenveil
