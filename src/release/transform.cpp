#include "eigenveil/release/transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "model_columns.hpp"
#include "model_shape.hpp"
#include "score_file.hpp"

namespace eigenveil {
namespace {

/// The public half of a model: everything a row passes through.
struct Projection {
  ColumnMap map;
  Matrix components;
  Vector mean;
};

Result<Projection> projection_of(const Model& model) {
  EIGENVEIL_TRY(validate(model, "The model"));
  EIGENVEIL_TRY(validate_projection(model, "The model"));
  if (!model.manifest.contains("columns")) {
    return bad_input("The model's manifest has no 'columns', so it is not known which columns its features come from.");
  }
  auto specs = columns_from_json(model.manifest["columns"]);
  if (!specs.ok()) return specs.error();
  auto map = ColumnMap::from_parts(*std::move(specs), *model.array("offset"), *model.array("scale"));
  return Projection{std::move(map), *model.array("components"), *model.array("mean")};
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

Error not_a_number(const std::string& path, const RawBatch& batch, std::size_t row, const std::string& column) {
  return bad_input(
      fmt::format("{}: row {}, column '{}': the value is missing or not finite, so the row has no score. Fill it in or "
                  "leave the row out.",
                  path, batch.first_row + row + 1, column));
}

/// Rows of a batch, mapped and centred.
Result<RowMajorMatrix> features_of(const Projection& projection, const RawBatch& batch, const std::string& path) {
  const std::size_t width = projection.map.raw_columns();
  RowMajorMatrix features(static_cast<Eigen::Index>(batch.rows), static_cast<Eigen::Index>(projection.map.features()));
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const double* raw = batch.values.data() + i * width;
    for (std::size_t j = 0; j < width; ++j) {
      if (!std::isfinite(raw[j])) return not_a_number(path, batch, i, projection.map.specs()[j].name);
    }
    projection.map.apply(raw, features.row(static_cast<Eigen::Index>(i)).data());
  }
  features.rowwise() -= projection.mean.transpose();
  return features;
}

/// About 4 MiB of rows at a time.
std::size_t batch_rows(const ColumnMap& map) {
  constexpr std::size_t kNumbers = std::size_t{1} << 19U;
  constexpr std::size_t kMost = 8192;
  return std::clamp<std::size_t>(kNumbers / std::max<std::size_t>({map.raw_columns(), map.features(), 1}), 1, kMost);
}

Status project(const Projection& projection, RowSource& source, const std::string& path, ScoreFile& out,
               const std::function<void(double)>& progress) {
  RawBatch batch;
  while (true) {
    EIGENVEIL_TRY(source.next(batch, batch_rows(projection.map)));
    if (batch.rows == 0) return {};
    const auto features = features_of(projection, batch, path);
    if (!features.ok()) return features.error();
    const RowMajorMatrix scores = *features * projection.components.transpose();
    EIGENVEIL_TRY(out.append(scores));
    if (progress) progress(source.progress());
  }
}

}  // namespace

Result<std::size_t> transform(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                              const std::string& out_path, const std::function<void(double)>& progress) {
  const auto projection = projection_of(model);
  if (!projection.ok()) return projection.error();
  if (same_file(data_path, out_path)) {
    return usage_error(fmt::format("{}: the scores would replace the data. Choose another output file.", out_path));
  }
  auto out = ScoreFile::create(out_path, static_cast<std::size_t>(projection->components.rows()));
  if (!out.ok()) return out.error();
  const auto options = options_for_columns(projection->map.specs(), data_path, source_options);
  if (!options.ok()) return options.error();
  auto source = open_source(data_path, *options);
  if (!source.ok()) return source.error();
  EIGENVEIL_TRY(project(*projection, **source, data_path, *out, progress));
  EIGENVEIL_TRY(out->commit());
  return out->rows();
}

}  // namespace eigenveil
