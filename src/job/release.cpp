// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/job/verdicts.hpp"

namespace eigenveil {
namespace {

Status check_outputs(const FitJob& job, std::size_t columns) {
  const auto shape = job.report_options.image_shape;
  if (shape && shape->height * shape->width != columns)
    return usage_error(fmt::format("`image_shape` {}x{} has {} pixels, but the data has {} columns", shape->height,
                                   shape->width, shape->height * shape->width, columns));
  if (job.out) EIGENVEIL_TRY(check_writable(*job.out));
  return job.report.empty() ? Status() : check_writable(job.report);
}

Status write_outputs(const Model& model, const FitJob& job, Observer& observer) {
  if (job.out) {
    observer.step("writing model");
    EIGENVEIL_TRY(write_model(model, *job.out));
  }
  if (!job.report.empty()) {
    observer.step("writing report");
    EIGENVEIL_TRY(write_file(job.report, html_report(model, job.report_options)));
  }
  observer.step("done");
  return {};
}

PrivateFiles files_of(const RowOptions& rows) {
  return rows.pairs ? PrivateFiles(private_files(rows.pairs->files)) : PrivateFiles(rows.data);
}

// Rows have bounds; given matrices and encoded views have none of these options.
bool bounded_by_options(const RowOptions& rows) {
  return rows.schema || rows.bounds || rows.row_bound || !rows.ranges.empty();
}

nlohmann::json noise_json(const std::vector<NotedNoise>& noise) {
  nlohmann::json list = nlohmann::json::array();
  for (const NotedNoise& one : noise)
    list.push_back({{"label", one.label}, {"entries", one.entries}, {"deviation", one.deviation}});
  return list;
}

Model model_of(const FitJob& job, const Estimator& estimator, const ChargedOracle& charge, const OpenedData& opened,
               const ColumnMap& columns, Fit fit) {
  const double radius = charge.oracle->shape().lattice.radius;
  nlohmann::json options = estimator.options();
  options.update(fit.options);
  if (bounded_by_options(job.rows)) options.update(row_options_json(job.rows, radius));
  if (opened.pairs) options["missing"] = name(job.rows.missing);
  Model model{std::move(fit.arrays), common_manifest(estimator, std::move(options), job.privacy, charge, fit.rows)};
  if (job.rows.person) add_person(model.manifest, *job.rows.person, opened.person, fit.rows);
  model.manifest["noise"] = noise_json(*charge.noise);
  model.manifest.update(fit.facts);
  for (std::string& warning : fit.warnings) model.manifest["warnings"].push_back(std::move(warning));
  if (opened.pairs) return model;
  add_columns(model.manifest, columns);
  // The public map to features stands beside the mean of the features.
  const auto mean = std::find_if(model.arrays.begin(), model.arrays.end(),
                                 [](const NamedArray& array) { return array.name == "mean"; });
  if (mean != model.arrays.end())
    model.arrays.insert(mean + 1, {{"offset", columns.offset(), true}, {"scale", columns.scale(), true}});
  return model;
}

}  // namespace

PreparationOptions preparation_of(const RowOptions& rows) {
  PreparationOptions preparation;
  preparation.mean = rows.center == Center::kPrivate ? MeanBy::kOnce
                     : rows.center == Center::kMean  ? MeanBy::kRefined
                                                     : MeanBy::kNone;
  preparation.bound = rows.row_bound;
  preparation.private_bound = rows.private_row_bound;
  preparation.count_rows = rows.person && rows.person->least_rows > 1;
  return preparation;
}

PreparationOptions forecast_preparation(const PreparationOptions& preparation) { return {.mean = preparation.mean}; }

Delta delta_for(std::size_t rows) {
  return *Delta::of(std::pow(static_cast<double>(std::max<std::size_t>(2, rows)), -1.1));
}

void settle_center(FitJob& job, bool about_mean) {
  if (job.rows.center != Center::kUsual) return;
  job.rows.center = about_mean && job.privacy.calibration == Calibration::kTight ? Center::kMean : Center::kRange;
}

namespace {

// What rests on independent rows says nothing about people, whose rows are alike.
Status check_for_people(const Estimator& estimator, const RowsShape& shape, const Budget& budget) {
  const auto plan = estimator.plan(shape, budget);
  if (!plan || !plan->model_based) return {};
  return usage_error(
      "`guarantee` model rests on independent rows, and those of one person are not: leave `person` out, or use "
      "`guarantee` strict");
}

}  // namespace

Status check(const FitJob& job, const Rivals& rivals, const OpenedData& opened) {
  if (job.privacy.auto_delta && job.privacy.adjacency != Adjacency::kReplaceOne)
    return usage_error("`delta` auto tells the number of rows, which add-remove-one hides: give a number");
  EIGENVEIL_TRY(check_payer(job.privacy, files_of(job.rows)));
  // Ids are told apart up to a chance of 2^-96: src/rows/people.proof.md.
  if (job.rows.person && job.privacy.delta.value() < 1e-18)
    return usage_error("with `person` a `delta` below 1e-18 cannot be promised");
  const RowsShape shape{opened.map.features(), {}, {1, 20}, job.privacy.adjacency};
  for (const auto& one : rivals.estimators) {
    // What is not calibrated is charged as it is, so it must be a paper's own noise.
    if (job.privacy.calibration == Calibration::kPaper && !one->noise_settled())
      return usage_error(fmt::format("`calibration` paper: no paper prescribes the noise of {}", one->name()));
    if (job.rows.person) EIGENVEIL_TRY(check_for_people(*one, shape, budget_of(job.privacy)));
    if (const auto fits = one->check(shape, budget_of(job.privacy)); !fits) {
      Error error = fits.error();
      if (error.code == ErrorCode::kBadInput && !opened.pairs)
        error.message = place_of(job.rows) + ": " + error.message;
      return error;
    }
  }
  return check_outputs(job, shape.columns);
}

Result<Release> release(const FitJob& given, const Rivals& rivals, const OpenedData& opened, HeldRows& rows,
                        Observer& observer) {
  FitJob job = given;
  const BoundingDiagnostics diagnostics = rows.diagnostics();
  // Under add-remove-one the number of rows is private and decides nothing.
  std::optional<std::size_t> count;
  if (job.privacy.adjacency == Adjacency::kReplaceOne) count = rows.rows();
  if (job.privacy.auto_delta) {
    if (!count)
      return usage_error("`delta` auto needs a number of rows that is known before the charge: give a number");
    job.privacy.delta = delta_for(*count);
  }
  const Budget budget = budget_of(job.privacy);
  Chosen choice{0, {}};
  if (rivals.estimators.size() > 1)
    choice = EIGENVEIL_TRY(choose(rivals, rows, budget, thread_count(job.run), observer));
  const Estimator& chosen = *rivals.estimators[choice.index];
  const bool total_private = job.rows.person && job.rows.person->least_rows > 1;
  if (total_private) count.reset();
  const RowsShape shape{rows.columns(), count, rows.lattice(), job.privacy.adjacency};
  EIGENVEIL_TRY(chosen.check(shape, budget));
  if (job.confirm) {
    const auto concerns = concerns_of(chosen, shape, budget, diagnostics, choice.error);
    if (!concerns.empty()) EIGENVEIL_TRY(job.confirm(concerns));
  }
  PrivacyPlan plan = EIGENVEIL_TRY(chosen.plan(shape, budget));
  if (job.rows.person) plan.person = opened.person;
  auto charged =
      EIGENVEIL_TRY(charge(rows, {plan, job.privacy, job.run, files_of(job.rows), chosen.purpose()}, observer));
  Fit fit = EIGENVEIL_TRY(chosen.fit(*charged.oracle, budget));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");
  if (fit.judge) observer.step("judging");
  add_verdicts(fit, chosen.name());
  if (!choice.planner.is_null()) fit.facts["planner"] = std::move(choice.planner);
  Model model = model_of(job, chosen, charged, opened, rivals.columns.value_or(opened.map), std::move(fit));
  EIGENVEIL_TRY(write_outputs(model, job, observer));
  return Release{std::move(model), diagnostics, chosen.notes(diagnostics.rows)};
}

Result<Release> release(const Study& study, Observer& observer) {
  const FitJob& job = study.job;
  const int threads = thread_count(job.run);
  if (job.rows.pairs && job.rows.pairs->directions > 0) observer.step("drawing public images");
  auto opened = EIGENVEIL_TRY(open_data(job.rows, threads));
  const auto rivals = EIGENVEIL_TRY(study.rivals(opened));
  EIGENVEIL_TRY(check(job, rivals, opened));
  std::size_t reserved = 0;
  for (const auto& one : rivals.estimators) reserved = std::max(reserved, one->bytes(opened.map.features(), threads));
  const auto rows = EIGENVEIL_TRY(hold(job.rows, opened, job.run, reserved, observer));
  return release(job, rivals, opened, *rows, observer);
}

}  // namespace eigenveil
