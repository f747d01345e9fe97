#include "eigenveil/job/cca.hpp"

#include "eigenveil/estimators/gep/cca.hpp"

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
    return usage_error("--x-columns and --y-columns say which columns are the two views: give both");
  RowOptions& rows = job.fit.rows;
  if (!rows.source.columns.empty())
    return usage_error("--columns does not go with --x-columns and --y-columns, which choose columns already");
  const auto facts = EIGENVEIL_TRY(file_facts(rows));
  const auto x = EIGENVEIL_TRY(column_names(rows, facts.source, job.x_columns));
  const auto y = EIGENVEIL_TRY(column_names(rows, facts.source, job.y_columns));
  // The rows with the columns of x first, then those of y.
  auto& both = rows.schema ? rows.schema_columns : rows.source.columns;
  both = x;
  both.insert(both.end(), y.begin(), y.end());
  return Study{job.fit, [job, raw_x = x.size()](const OpenedData& opened) -> Result<Rivals> {
                 Rivals rivals;
                 rivals.estimators.push_back(estimator(
                     CcaOptions{gep_options(job.gep, job.fit, opened.map.features()), features_of(opened.map, raw_x)}));
                 return rivals;
               }};
}

}  // namespace eigenveil
