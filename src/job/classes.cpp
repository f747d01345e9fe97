#include "eigenveil/job/classes.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/classes.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kFinePerSlice = 8;
constexpr std::size_t kMostSlices = 1000;

// `options` but for what depends on the columns.
Study study_of(FitJob fit, const GepChoices& gep, ClassOptions options) {
  return {fit, [fit, gep, options](const OpenedData& opened) -> Result<Rivals> {
            ClassOptions known = options;
            known.gep = gep_options(gep, fit, opened.map.features());
            known.names = opened.classes;
            known.classes = opened.classes.size();
            Rivals rivals;
            rivals.estimators.push_back(estimator(std::move(known)));
            return rivals;
          }};
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

Result<Study> study(FdaJob job) {
  if (job.label.empty()) return usage_error("--label COL says which column holds the class");
  job.fit.rows.class_column = ClassColumn{job.label, job.classes, job.drop_unlisted, {}};
  ClassOptions options{.gep = {}, .problem = ClassProblem::kFisher, .classes = 0};
  options.drop_unlisted = job.drop_unlisted;
  return study_of(std::move(job.fit), job.gep, std::move(options));
}

Result<Study> study(SirJob job) {
  if (job.response.empty()) return usage_error("--response COL says which column is to be explained");
  const auto facts = EIGENVEIL_TRY(file_facts(job.fit.rows));
  const auto names = EIGENVEIL_TRY(column_names(job.fit.rows, facts.source, {job.response}));
  ClassOptions options{.gep = {}, .problem = ClassProblem::kSliced, .classes = 0};
  options.response = names.front();
  options.cuts = job.slices.cuts;
  if (options.cuts.empty()) {
    const std::size_t count = job.slices.count;
    if (count < 2 || count > kMostSlices)
      return usage_error(fmt::format("--slices must lie between 2 and {}, but is {}", kMostSlices, count));
    const auto range = EIGENVEIL_TRY(range_of(job, names.front()));
    options.cuts = equal_cuts(range, job.slices.private_cuts ? kFinePerSlice * count : count);
    if (job.slices.private_cuts) options.merged = count;
  }
  job.fit.rows.class_column = ClassColumn{job.response, {}, false, options.cuts};
  return study_of(std::move(job.fit), job.gep, std::move(options));
}

}  // namespace eigenveil
