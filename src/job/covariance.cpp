// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/covariance.hpp"

#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

// Beyond this a d x d matrix is the wrong way to a few components.
constexpr std::size_t kMostColumns = 4096;

CovarianceProgram program_for(const CovarianceJob& job, PcaMethod method, std::size_t columns) {
  CovarianceProgram program{method, preparation_of(job.fit.rows), job.spiked, job.scale};
  if (columns > kMostColumns && job.spiked.rank && job.spiked.guarantee == Guarantee::kStrict)
    program.spiked.subspace = Subspace::kAdaptivePower;
  return program;
}

Result<Rivals> rivals_of(const CovarianceJob& job, const OpenedData& opened) {
  const std::size_t d = opened.map.features();
  const Budget budget = budget_of(job.fit.privacy);
  std::vector<CovarianceProgram> programs;
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked})
    if (job.method ? *job.method == method : method == PcaMethod::kGram || job.scale == Scale::kRange)
      programs.push_back(program_for(job, method, d));
  if (programs.empty()) programs.push_back(program_for(job, *job.method, d));
  const Calibration calibration = job.fit.privacy.calibration;
  EIGENVEIL_TRY(check_named(job.method.has_value(), calibration));
  EIGENVEIL_TRY(check_guess(job.guess, budget, !job.method, d));
  Rivals rivals;
  rivals.guess = guessed_rows(job.guess, job.spiked.rank.value_or(1), {}, job.fit.rows.row_bound);
  for (CovarianceProgram program : programs) {
    rivals.estimators.push_back(estimator_by(calibration, program, job.dense));
    program.preparation = forecast_preparation(program.preparation);
    rivals.prepared.push_back(estimator_by(calibration, program, true));
  }
  return rivals;
}

}  // namespace

ForecastRequest covariance_forecast(const SpectrumModel& model, std::optional<std::size_t> rank, const Budget& budget) {
  ForecastRequest request{.task = "covariance", .model = public_model(model), .budget = budget};
  request.remedies = kPcaRemedies;
  request.subject = "The covariance matrix";
  for (const PcaMethod method : {PcaMethod::kGram, PcaMethod::kSpiked}) {
    CovarianceProgram program{method, {.mean = MeanBy::kRefined}};
    program.spiked.rank = rank;
    request.contenders.push_back({[program](std::size_t) { return estimator(program, true); }});
  }
  return request;
}

Study study(CovarianceJob job) {
  // The model speaks of rows about zero.
  settle_center(job.fit, job.method != PcaMethod::kSpiked || job.spiked.guarantee == Guarantee::kStrict);
  const auto shared = std::make_shared<const CovarianceJob>(std::move(job));
  return {shared->fit, [shared](const OpenedData& opened) { return rivals_of(*shared, opened); }};
}

}  // namespace eigenveil
