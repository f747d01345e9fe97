#include "eigenveil/job/pca.hpp"

namespace eigenveil {
namespace {

PcaProgram program_for(const PcaJob& job, PcaMethod method, const PreparationOptions& preparation) {
  PcaProgram program{method, {job.components, preparation, job.sparsity}, job.power, job.spiked};
  program.spiked.power = job.power;
  program.as_in_paper = job.fit.privacy.calibration == Calibration::kPaper;
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
      job.guess.expected_rows || (job.fit.privacy.adjacency == Adjacency::kReplaceOne && !elsewhere(job.fit.rows));
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

Result<Rivals> rivals_of(const PcaJob& job, const OpenedData& opened) {
  const std::size_t d = opened.map.features();
  const Budget budget = budget_of(job.fit.privacy);
  if (!job.method && budget.calibration == Calibration::kPaper)
    return usage_error("--calibration paper needs a --method: each paper has its own");
  const auto programs = programs_for(job, preparation_of(job.fit.rows), d);
  EIGENVEIL_TRY(check_guess(job.guess, budget, !job.method || job.choose_rounds, d));
  Rivals rivals;
  for (const PcaProgram& program : programs) rivals.estimators.push_back(estimator(program));
  rivals.choose = [&job, programs, budget](const HeldRows& rows, Observer& observer) -> Result<Chosen> {
    const auto selection =
        EIGENVEIL_TRY(select(programs, job.guess, rows, budget, thread_count(job.fit.run), observer));
    return Chosen{selection.index,
                  {{"chosen", describe(programs[selection.index])}, {"forecasts", selection.forecasts}}};
  };
  return rivals;
}

}  // namespace

Study study(PcaJob job) {
  const auto shared = std::make_shared<const PcaJob>(std::move(job));
  return {shared->fit, [shared](const OpenedData& opened) { return rivals_of(*shared, opened); }};
}

}  // namespace eigenveil
