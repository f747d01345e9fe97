// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/pca.hpp"

#include <fmt/format.h>

#include "eigenveil/data/sha256.hpp"
#include "eigenveil/estimators/pca/pilot.hpp"
#include "eigenveil/estimators/pca/score_plot.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/papers/as_printed.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {
namespace {

PcaProgram program_for(const PcaJob& job, PcaMethod method, const PreparationOptions& preparation) {
  PcaProgram program{method, {job.components, preparation, job.sparsity, job.scale}, job.power, job.spiked, job.start};
  program.spiked.power = job.power;
  return program;
}

bool rows_known(const PcaJob& job) {
  return job.guess.expected_rows || (job.fit.privacy.adjacency == Adjacency::kReplaceOne && !elsewhere(job.fit.rows));
}

// Of what nobody named: by a rule where there is one. Forecasts know what was stated about the rows: a spectrum, or
// that few columns matter.
std::optional<PcaMethod> method_of(const PcaJob& job, std::size_t columns) {
  if (job.method) return job.method;
  if (!job.guess.spectrum.empty() || (job.sparsity && rows_known(job))) return std::nullopt;
  if (job.sparsity) return PcaMethod::kGram;
  // Sites answer every answer of a plan, and so does who draws a picture in the end.
  const bool whole_plan = elsewhere(job.fit.rows) || job.score_plot;
  if (job.scale == Scale::kCorrelation || (whole_plan && columns <= kMostGramColumns)) return PcaMethod::kGram;
  if (columns > kMostGramColumns) return PcaMethod::kAdaptivePower;
  const bool pilot = worth_a_pilot(job.components, columns) && job.power.filter != RowFilter::kOff;
  return pilot ? PcaMethod::kPilot : PcaMethod::kGram;
}

// Everything the user left to a forecast, best first guess included.
std::vector<PcaProgram> programs_for(const PcaJob& job, const PreparationOptions& preparation, std::size_t columns) {
  const PcaOptions options{job.components, preparation, job.sparsity, job.scale};
  const auto method = method_of(job, columns);
  if (!method) {
    std::vector<PcaProgram> programs;
    for (PcaProgram program : candidates(options, columns)) {
      if (program.method == PcaMethod::kSphere && (job.score_plot || elsewhere(job.fit.rows))) continue;
      const std::size_t rounds = program.power.rounds;
      program.power = job.power;
      if (job.choose_rounds) program.power.rounds = rounds;
      if (programs.empty() || describe(programs.back()) != describe(program)) programs.push_back(program);
    }
    return programs;
  }
  const PcaProgram given = program_for(job, *method, preparation);
  std::vector<PcaProgram> programs = {given};
  if (*method == PcaMethod::kSpiked && job.spiked.guarantee == Guarantee::kStrict && job.spiked.rank && rows_known(job))
    for (const std::size_t rounds : {4U, 8U}) {
      programs.push_back(given);
      programs.back().spiked.subspace = Subspace::kAdaptivePower;
      programs.back().spiked.power.rounds = rounds;
    }
  const bool iterates = *method == PcaMethod::kPower || *method == PcaMethod::kSparsePower ||
                        *method == PcaMethod::kAdaptivePower || *method == PcaMethod::kPilot;
  if (job.method && iterates && job.choose_rounds) {
    programs.clear();
    for (const std::size_t rounds : {4U, 8U, 16U}) {
      programs.push_back(given);
      programs.back().power.rounds = rounds;
    }
  }
  return programs;
}

/// The picture that was asked for, with the classes that are known now.
Result<std::optional<ScorePlot>> plot_of(const PcaJob& job, const OpenedData& opened) {
  if (!job.score_plot) {
    if (job.fit.rows.class_column)
      return usage_error("`label` sorts rows for a picture of them: it needs `score_plot`");
    return std::optional<ScorePlot>();
  }
  if (job.method == PcaMethod::kSphere)
    return usage_error("`method` sphere makes all rows of one length: a `score_plot` of them would show nothing");
  if (job.method == PcaMethod::kPilot)
    return usage_error(
        "`method` pilot spends all that is left on one of two ways: name one of them, gram or "
        "adaptive-power, with a `score_plot`");
  if (elsewhere(job.fit.rows))
    return usage_error("`score_plot` is no question that sites of a federation know: leave it out");
  if (job.fit.privacy.calibration == Calibration::kPaper)
    return usage_error("`calibration` paper reproduces a paper as it is, and none has a `score_plot`");
  return std::optional(ScorePlot{*job.score_plot, opened.classes, opened.class_name});
}

std::unique_ptr<Estimator> plotted(std::unique_ptr<Estimator> pca, const std::optional<ScorePlot>& plot) {
  return plot ? with_score_plot(std::move(pca), *plot) : std::move(pca);
}

Result<Rivals> rivals_of(const PcaJob& job, const OpenedData& opened) {
  const std::size_t d = opened.map.features();
  const Budget budget = budget_of(job.fit.privacy);
  const Calibration calibration = job.fit.privacy.calibration;
  EIGENVEIL_TRY(check_named(job.method.has_value(), calibration));
  for (const PcaMethod method : {PcaMethod::kSphere, PcaMethod::kPilot})
    if (job.method == method && elsewhere(job.fit.rows))
      return usage_error(fmt::format("`method` {} is no way that sites of a federation know: use gram", name(method)));
  PreparationOptions preparation = preparation_of(job.fit.rows);
  preparation.directions = job.components;
  // Directions hardly mind shorter rows, and noise falls with the square of their length.
  if (preparation.bound_by == BoundBy::kMoments && job.scale == Scale::kRange && job.method != PcaMethod::kSpiked &&
      !job.score_plot)  // a picture of them does
    preparation.bound_by = BoundBy::kDirections;
  const auto programs = programs_for(job, preparation, d);
  const bool open = !method_of(job, d) || (job.method && job.choose_rounds);
  EIGENVEIL_TRY(check_guess(job.guess, budget, open, d));
  Rivals rivals;
  rivals.guess = guessed_rows(job.guess, job.components, job.sparsity, job.fit.rows.row_bound);
  if (const auto& begun = job.start.features; begun.size() == d && begun != opened.map.feature_names())
    return bad_input(
        "`start` has directions of other features than the data: they must be the same ones, in that order");
  const auto plot = EIGENVEIL_TRY(plot_of(job, opened));
  auto without_classes = plot;
  if (plot) without_classes->classes.clear();
  for (PcaProgram program : programs) {
    rivals.estimators.push_back(plotted(estimator_by(calibration, program), plot));
    program.options.preparation = forecast_preparation(program.options.preparation);
    rivals.prepared.push_back(plotted(estimator_by(calibration, program), without_classes));
  }
  return rivals;
}

}  // namespace

ForecastRequest pca_forecast(const SpectrumModel& model, const Budget& budget, std::optional<double> score_plot) {
  const PcaOptions options{model.components, {.mean = MeanBy::kRefined}, model.sparsity};
  std::vector<PcaProgram> programs = candidates(options, model.spectrum.size());
  if (!options.sparsity) programs.push_back({PcaMethod::kPower, options, {.rounds = 4, .filter = RowFilter::kOff}});
  ForecastRequest request{.task = "pca", .model = public_model(model), .budget = budget};
  request.remedies = kPcaRemedies;
  for (PcaProgram& program : programs) {
    request.contenders.push_back({[program, score_plot](std::size_t) {
      return plotted(estimator(program), score_plot ? std::optional(ScorePlot{*score_plot}) : std::nullopt);
    }});
  }
  return request;
}

Result<GivenStart> read_start(const std::string& path, bool people) {
  const Model model = EIGENVEIL_TRY(read_model(path));
  nlohmann::json promises = nlohmann::json::array();
  const std::string sha256 = EIGENVEIL_TRY(sha256_of_files({path}));
  EIGENVEIL_TRY(add_promises(promises, EIGENVEIL_TRY(promises_of(model.manifest, path, sha256, people))));
  const Matrix* components = model.array("components");
  if (components == nullptr || components->rows() == 0 || !model.manifest.contains("features"))
    return bad_input(fmt::format("'{}' holds no components to begin with: take a model of pca", path));
  GivenStart start{components->transpose(), model.manifest["features"], std::move(promises)};
  for (Eigen::Index i = 0; i < start.directions.cols(); ++i) {
    const double length = start.directions.col(i).stableNorm();
    if (!(length > 0)) return bad_input(fmt::format("component {} of '{}' is zero and has no direction", i + 1, path));
    start.directions.col(i) /= length;
  }
  return start;
}

Study study(PcaJob job) {
  // The model speaks of rows about zero.
  settle_center(job.fit, job.method != PcaMethod::kSpiked || job.spiked.guarantee == Guarantee::kStrict);
  const auto shared = std::make_shared<const PcaJob>(std::move(job));
  return {shared->fit, [shared](const OpenedData& opened) { return rivals_of(*shared, opened); }};
}

}  // namespace eigenveil
