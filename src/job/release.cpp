// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "eigenveil/data/sha256.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/job/verdicts.hpp"
#include "eigenveil/privacy/least_delta.hpp"
#include "eigenveil/query/meter.hpp"

namespace eigenveil {
namespace {

Status check_outputs(const FitJob& job, std::size_t columns) {
  const auto shape = job.report_options.image_shape;
  if (shape && shape->height * shape->width != columns)
    return usage_error(fmt::format("`image_shape` {}x{} has {} pixels, but the data has {} columns", shape->height,
                                   shape->width, shape->height * shape->width, columns));
  if (job.out) EIGENVEIL_TRY(AtomicFile::create(*job.out, {.existing = job.existing}));
  if (!job.report.empty()) EIGENVEIL_TRY(AtomicFile::create(job.report, {.existing = job.existing}));
  return {};
}

// model.npz, model-2.npz, ...
std::string numbered(const std::string& path, int number) {
  if (number == 1) return path;
  const std::filesystem::path whole(path);
  return whole.parent_path() / fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string());
}

// Somebody may have taken the name since it was found free, and what was paid for is not lost over that: it gets the
// next name. Where it is now.
Result<std::string> write_beside(const std::string& path, Existing existing,
                                 const std::function<Status(const std::string& name, FileModes modes)>& write) {
  constexpr int kMost = 1000;
  for (int number = 1;; ++number) {
    const std::string name = numbered(path, number);
    const Status written = write(name, {.existing = existing});
    if (written) return name;
    std::error_code ignored;
    const bool taken = std::filesystem::exists(std::filesystem::symlink_status(name, ignored));
    if (existing == Existing::kReplace || !taken || number == kMost) return written.error();
  }
}

Status write_outputs(Release& made, const FitJob& job, Observer& observer) {
  if (job.out) {
    observer.step("writing model");
    made.out = EIGENVEIL_TRY(write_beside(*job.out, job.existing, [&](const std::string& name, FileModes modes) {
      return write_model(made.model, name, modes);
    }));
  }
  if (!job.report.empty()) {
    observer.step("writing report");
    const std::string page = html_report(made.model, job.report_options);
    made.report = EIGENVEIL_TRY(write_beside(job.report, job.existing, [&](const std::string& name, FileModes modes) {
      return write_file(name, page, modes);
    }));
  }
  observer.step("done");
  return {};
}

PrivateFiles files_of(const RowOptions& rows) {
  if (!rows.pairs) return files_of(rows.given, rows.data);
  RowFiles files = private_files(rows.pairs->files);
  for (const auto& view : {rows.pairs->given_x, rows.pairs->given_y}) files.add(files_of(view, ""));
  return PrivateFiles(files, rows.pairs->files.person);
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
  if (bounded_by_options(job.rows)) options.update(row_options_json(job.rows, radius));
  options.update(fit.options);
  if (opened.pairs) options["missing"] = name(job.rows.missing);
  Model model{std::move(fit.arrays), common_manifest(estimator, std::move(options), job.privacy, charge, fit.rows)};
  if (job.rows.person) add_person(model.manifest, *job.rows.person, opened.person, fit.rows);
  model.manifest["noise"] = noise_json(*charge.noise);
  add_said(model.manifest, std::move(fit));
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

Status record_file(const std::optional<LedgerEntry>& entry, const std::string& path) {
  if (!entry) return {};
  const auto hash = EIGENVEIL_TRY(sha256_of_files({path}));
  auto ledger = EIGENVEIL_TRY(Ledger::open_existing(entry->ledger));
  const auto charged = EIGENVEIL_TRY(ledger.find_entry(entry->id));
  if (!charged || charged->record.mark != entry->mark)
    return bad_input(fmt::format("the ledger '{}' is no longer the one that was charged", entry->ledger));
  return ledger.record_model(entry->id, hash);
}

PreparationOptions preparation_of(const RowOptions& rows) {
  PreparationOptions preparation;
  preparation.mean = rows.center == Center::kPrivate ? MeanBy::kOnce
                     : rows.center == Center::kMean  ? MeanBy::kRefined
                                                     : MeanBy::kNone;
  preparation.bound = rows.row_bound;
  if (finds_row_bound(rows)) preparation.bound_by = BoundBy::kMoments;
  preparation.count_rows = rows.person && rows.person->least_rows > 1;
  return preparation;
}

PreparationOptions forecast_preparation(const PreparationOptions& preparation) {
  return {.mean = preparation.mean, .bound_by = preparation.bound_by, .directions = preparation.directions};
}

Delta delta_for(std::size_t rows) {
  return *Delta::of(std::pow(static_cast<double>(std::max<std::size_t>(2, rows)), -1.1));
}

void settle_center(FitJob& job, bool about_mean) {
  if (job.privacy.calibration == Calibration::kPaper && !job.rows.find_row_bound) job.rows.find_row_bound = false;
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

// A verdict has eighth powers of lengths, and searches find bounds far below the stated one: what no double holds is
// refused while it costs nothing.
Status check_bound(const RowOptions& rows) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  if (!rows.row_bound || (rows.row_bound->value() >= kLeast && rows.row_bound->value() <= kMost)) return {};
  return usage_error(fmt::format(
      "`row_bound` must lie between 1e-30 and 1e30, but is {:g}: squares of squares of lengths are computed "
      "with; take another unit",
      rows.row_bound->value()));
}

}  // namespace

Status check(const FitJob& job, const Rivals& rivals, const OpenedData& opened) {
  EIGENVEIL_TRY(check_bound(job.rows));
  if (job.privacy.auto_delta && job.privacy.adjacency != Adjacency::kReplaceOne)
    return usage_error(
        "`delta` auto tells the number of rows, which add-remove-one hides: give a number, or a public guess of how "
        "many "
        "rows there are (`expected_rows`, where there is such an option)");
  EIGENVEIL_TRY(check_payer(job.privacy, files_of(job.rows)));
  if (job.rows.person) EIGENVEIL_TRY(check_delta_of_people(job.privacy.delta));
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
  if (count == std::size_t{0} && !opened.pairs)
    return bad_input(place_of(job.rows) + ": there are no rows, and so nothing that could be released");
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
  const auto concerns = concerns_of(chosen, shape, budget, diagnostics, choice.error);
  if (job.confirm && !concerns.empty()) EIGENVEIL_TRY(job.confirm(concerns));
  if (!job.confirm)
    for (const Concern& concern : concerns)
      if (!concern.of_rows) observer.concern(concern.words);
  if (diagnostics.one_row_each && diagnostics.rows > 1) observer.remark(kOwnPersonEach);
  PrivacyPlan plan = EIGENVEIL_TRY(chosen.plan(shape, budget));
  if (job.rows.person) plan.person = opened.person;
  auto charged =
      EIGENVEIL_TRY(charge(rows, {plan, job.privacy, job.run, files_of(job.rows), chosen.purpose()}, observer));
  Fit fit = EIGENVEIL_TRY(chosen.fit(*charged.oracle, budget));
  EIGENVEIL_TRY(all_asked(charged.oracle->complete()));
  if (fit.judge) observer.step("judging");
  add_verdicts(fit, chosen.name());
  if (!choice.planner.is_null()) fit.facts["planner"] = std::move(choice.planner);
  Model model = model_of(job, chosen, charged, opened, rivals.columns.value_or(opened.map), std::move(fit));
  const auto unrecorded = std::make_shared<std::string>();
  if (charged.entry)
    model.written = [entry = charged.entry, unrecorded](const std::string& path) {
      const Status recorded = record_file(entry, path);
      *unrecorded = recorded ? "" : recorded.error().message;
    };
  Release made{std::move(model), diagnostics, chosen.notes(diagnostics.rows)};
  EIGENVEIL_TRY(write_outputs(made, job, observer));
  made.unrecorded = *unrecorded;
  return made;
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
