#include "eigenveil/job/covariance.hpp"

namespace eigenveil {
namespace {

// Beyond this a d x d matrix is the wrong way to a few components.
constexpr std::size_t kMostColumns = 4096;

CovarianceProgram program_for(const CovarianceJob& job, PcaMethod method, std::size_t columns) {
  CovarianceProgram program{method, preparation_of(job.fit.rows), job.spiked};
  if (columns > kMostColumns && job.spiked.rank && job.spiked.guarantee == Guarantee::kStrict)
    program.spiked.subspace = Subspace::kAdaptivePower;
  return program;
}

Result<Chosen> choose_method(const CovarianceJob& job, const std::vector<CovarianceProgram>& programs,
                             const HeldRows& rows, Observer& observer) {
  const Budget budget = budget_of(job.fit.privacy);
  std::optional<std::size_t> count;
  if (budget.adjacency == Adjacency::kReplaceOne) count = rows.rows();
  const PcaOptions options{job.spiked.rank.value_or(1), {}, {}};
  const auto model = EIGENVEIL_TRY(public_model(job.guess, count, rows.columns(), rows.lattice().radius, options));
  observer.step("forecasting methods on a public model");
  const auto sample = EIGENVEIL_TRY(Sample::draw(model, thread_count(job.fit.run), 1));
  Chosen chosen{0, {{"forecasts", nlohmann::json::array()}}};
  double best = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    CovarianceProgram prepared = programs[i];
    prepared.preparation = {};
    const double error = EIGENVEIL_TRY(forecast_covariance(sample, prepared, budget, model.rows));
    chosen.planner["forecasts"].push_back({{"method", name(prepared.method)}, {"relative_error", error}});
    if (i > 0 && !(error < best)) continue;
    best = error;
    chosen.index = i;
  }
  chosen.planner["chosen"] = name(programs[chosen.index].method);
  return chosen;
}

Result<Rivals> rivals_of(const CovarianceJob& job, const OpenedData& opened) {
  const std::size_t d = opened.map.features();
  const Budget budget = budget_of(job.fit.privacy);
  std::vector<CovarianceProgram> programs;
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked})
    if (!job.method || *job.method == method) programs.push_back(program_for(job, method, d));
  if (programs.empty()) programs.push_back(program_for(job, *job.method, d));
  if (!job.method && budget.calibration == Calibration::kPaper)
    return usage_error("--calibration paper needs a --method: each paper has its own");
  EIGENVEIL_TRY(check_guess(job.guess, budget, !job.method, d));
  Rivals rivals;
  for (const CovarianceProgram& program : programs) rivals.estimators.push_back(estimator(program, job.dense));
  rivals.choose = [&job, programs](const HeldRows& rows, Observer& observer) {
    return choose_method(job, programs, rows, observer);
  };
  return rivals;
}

}  // namespace

Study study(CovarianceJob job) {
  const auto shared = std::make_shared<const CovarianceJob>(std::move(job));
  return {shared->fit, [shared](const OpenedData& opened) { return rivals_of(*shared, opened); }};
}

}  // namespace eigenveil
