// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/classes.hpp"

#include <fmt/format.h>

#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kFinePerSlice = 8;
constexpr std::size_t kMostSlices = 1000;

// `options` but for what depends on the columns.
Study study_of(const FitJob& fit, const GepChoices& gep, const ClassOptions& options) {
  return {fit, [fit, gep, options](const OpenedData& opened) -> Result<Rivals> {
            ClassOptions known = options;
            known.gep = gep_options(gep, fit, opened.map.features());
            if (known.problem == ClassProblem::kFisher && known.gep.preparation.bound_by == BoundBy::kMoments)
              known.gep.preparation.bound_by = BoundBy::kDirections;
            known.names = opened.classes;
            known.classes = opened.classes.size();
            if (known.problem == ClassProblem::kSliced) known.response = opened.class_name;
            known.cuts = opened.cuts;
            Rivals rivals;
            rivals.estimators.push_back(estimator_by(fit.privacy.calibration, std::move(known)));
            return rivals;
          }};
}

}  // namespace

Result<Study> study(FdaJob job) {
  if (job.label.empty()) return usage_error("`label` COL says which column holds the class");
  settle_center(job.fit, false);  // class means say where the rows are
  job.fit.rows.class_column = ClassColumn{job.label, job.classes, job.drop_unlisted, {}};
  ClassOptions options{.gep = {}, .problem = ClassProblem::kFisher, .classes = 0};
  options.drop_unlisted = job.drop_unlisted;
  return study_of(std::move(job.fit), job.gep, std::move(options));
}

Result<Study> study(SirJob job) {
  if (job.response.empty()) return usage_error("`response` COL says which column is to be explained");
  settle_center(job.fit, false);
  ClassOptions options{.gep = {}, .problem = ClassProblem::kSliced, .classes = 0};
  ClassColumn column{job.response, {}, false, job.slices.cuts};
  if (column.cuts.empty()) {
    const std::size_t count = job.slices.count;
    if (count < 2 || count > kMostSlices)
      return usage_error(fmt::format("`slices` must lie between 2 and {}, but is {}", kMostSlices, count));
    column.slices = job.slices.private_cuts ? kFinePerSlice * count : count;
    column.range = job.response_range;
    if (job.slices.private_cuts) options.merged = count;
  }
  job.fit.rows.class_column = std::move(column);
  return study_of(std::move(job.fit), job.gep, std::move(options));
}

}  // namespace eigenveil
