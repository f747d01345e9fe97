// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/cca.hpp"

#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

std::size_t features_of(const ColumnMap& map, std::size_t raw_columns) {
  std::size_t features = 0;
  for (std::size_t i = 0; i < raw_columns; ++i) {
    const auto* categorical = std::get_if<CategoricalColumn>(&map.specs()[i].kind);
    features += categorical != nullptr ? categorical->values.size() : 1;
  }
  return features;
}

}  // namespace

Result<Study> study(CcaJob job) {
  if (job.x_columns.empty() || job.y_columns.empty())
    return usage_error("`x_columns` and `y_columns` say which columns are the two views: give both");
  settle_center(job.fit, true);
  RowOptions& rows = job.fit.rows;
  if (!rows.source.columns.empty())
    return usage_error("`columns` does not go with `x_columns` and `y_columns`, which choose columns already");
  rows.first_view = job.x_columns;
  rows.second_view = job.y_columns;
  return Study{job.fit, [job](const OpenedData& opened) -> Result<Rivals> {
                 Rivals rivals;
                 rivals.estimators.push_back(estimator_by(
                     job.fit.privacy.calibration, CcaOptions{gep_options(job.gep, job.fit, opened.map.features()),
                                                             features_of(opened.map, opened.first_view)}));
                 return rivals;
               }};
}

}  // namespace eigenveil
