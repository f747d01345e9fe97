// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/transform.hpp"
#include "eigenveil/data/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "csv_cell.hpp"
#include "directions.hpp"
#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/release/kinds.hpp"
#include "model_columns.hpp"
#include "score_file.hpp"

namespace eigenveil {
namespace {

/// The public half of a model: everything a row passes through.
struct Projection {
  ColumnMap map;
  DirectionSet directions;
  Vector mean;
  Vector spread;  ///< of features that are divided by it; empty: they are not
};

Result<Projection> projection_of(const Model& model) {
  auto directions = EIGENVEIL_TRY(directions_of(model, "The model"));
  if (!model.manifest.contains("columns")) {
    return bad_input("The model's manifest has no 'columns', so it is not known which columns its features come from.");
  }
  auto specs = columns_from_json(model.manifest["columns"]);
  if (!specs.ok()) return specs.error();
  auto map = ColumnMap::from_parts(*std::move(specs), *model.array("offset"), *model.array("scale"));
  const Matrix* spread = model.array("spread");
  if (spread != nullptr && !(spread->array() > 0).all())
    return bad_input("The model's 'spread' holds a number that is not positive: rows cannot be divided by it.");
  return Projection{std::move(map), std::move(directions), *model.array("mean"),
                    spread == nullptr ? Vector() : Vector(spread->reshaped())};
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

Error not_a_number(const std::string& path, const RawBatch& batch, std::size_t row, const std::string& column) {
  return bad_input(
      fmt::format("{}: row {}, column '{}': the value is missing, NaN or infinite, so the row has no score. Fill it in "
                  "or leave the row out.",
                  path, batch.first_row + row + 1, column));
}

/// The model says what it counts as.
bool may_be_missing(const ColumnSpec& spec) {
  return std::visit([](const auto& kind) { return kind.missing.has_value(); }, spec.kind);
}

/// Rows of a batch, mapped and centred.
Result<RowMajorMatrix> features_of(const Projection& projection, const RawBatch& batch, const std::string& path) {
  const std::size_t width = projection.map.raw_columns();
  RowMajorMatrix features(batch.rows, projection.map.features());
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const double* raw = batch.values.data() + i * width;
    for (std::size_t j = 0; j < width; ++j) {
      if (!std::isfinite(raw[j]) && !may_be_missing(projection.map.specs()[j]))
        return not_a_number(path, batch, i, projection.map.specs()[j].name);
    }
    projection.map.apply(raw, features.row(i).data());
  }
  features.rowwise() -= projection.mean.transpose();
  if (projection.spread.size() > 0) features.array().rowwise() /= projection.spread.transpose().array();
  return features;
}

/// About 4 MiB of rows at a time.
std::size_t batch_rows(const ColumnMap& map) {
  constexpr std::size_t kNumbers = std::size_t{1} << 19U;
  constexpr std::size_t kMost = 8192;
  return std::clamp<std::size_t>(kNumbers / std::max<std::size_t>({map.raw_columns(), map.features(), 1}), 1, kMost);
}

/// Takes the scores of a batch of rows.
using Sink = std::function<Status(const RowMajorMatrix& scores)>;

Status project(const Projection& projection, RowSource& source, const std::string& path, const Sink& sink,
               const std::function<void(double)>& progress) {
  RawBatch batch;
  while (true) {
    EIGENVEIL_TRY(source.next(batch, batch_rows(projection.map)));
    if (batch.rows == 0) return {};
    const std::string part = source.part();
    const auto features = features_of(projection, batch, part.empty() ? path : part);
    if (!features.ok()) return features.error();
    RowMajorMatrix scores = *features * projection.directions.rows.transpose();
    if (projection.directions.shift.size() > 0) scores.rowwise() += projection.directions.shift.transpose();
    EIGENVEIL_TRY(sink(scores));
    if (progress) progress(source.progress());
  }
}

/// The rows of a data file, opened for a model.
Result<std::unique_ptr<RowSource>> open_rows(const Projection& projection, const std::string& data_path,
                                             const SourceOptions& source_options) {
  const std::vector<ColumnSpec>& specs = projection.map.specs();
  SourceOptions options = options_for_file(specs, source_options);
  if (std::all_of(specs.begin(), specs.end(), may_be_missing)) options.bad_rows = BadRows::kMissing;
  auto table = EIGENVEIL_TRY(Table::open(data_path, options));
  const auto columns = EIGENVEIL_TRY(table.column_names(options.columns));
  return table.take(EIGENVEIL_TRY(options_for_columns(specs, columns, data_path, options)));
}

Status check_output(const std::string& data_path, const std::string& out_path) {
  if (!same_file(data_path, out_path)) return {};
  return usage_error(fmt::format("{}: the scores would replace the data. Choose another output file.", out_path));
}

Status check_predicts(const Model& model, bool (*is)(const ModelKind& kind)) {
  const ModelKind& kind = kind_of(model.manifest);
  if (is(kind)) return {};
  return usage_error(
      fmt::format("a model '{}' has nothing of that kind to predict; known are {}", kind.name, kinds_in_words(is)));
}

bool predicts_classes(const ModelKind& kind) { return kind.prediction == Prediction::kClass; }
bool predicts(const ModelKind& kind) { return kind.prediction != Prediction::kNone; }

/// Nearest class mean among the scores, the prior counted in: the largest of log prior - |s - s_c|^2 / 2.
class Classifier {
 public:
  Classifier(const Model& model, const Projection& projection)
      : means_((model.array("class_means")->rowwise() - projection.mean.transpose()) *
               projection.directions.rows.transpose()),
        priors_(model.array("priors")->reshaped()) {
    for (const auto& label : model.manifest["classes"]) labels_.push_back(label.get<std::string>());
  }

  const std::string& label(const Eigen::RowVectorXd& score) const {
    Eigen::Index best = 0;
    double most = -std::numeric_limits<double>::infinity();
    for (Eigen::Index c = 0; c < means_.rows(); ++c) {
      if (!(priors_[c] > 0)) continue;
      const double value = std::log(priors_[c]) - (score - means_.row(c)).squaredNorm() / 2;
      if (value > most) most = value, best = c;
    }
    return labels_[best];
  }

 private:
  Matrix means_;  // of the scores, one per row
  Vector priors_;
  std::vector<std::string> labels_;
};

}  // namespace

namespace {

/// Rows that the caller opened, for a model.
Result<std::unique_ptr<RowSource>> open_rows(const Projection& projection, GivenRows& rows) {
  const auto columns = EIGENVEIL_TRY(rows.column_names({}));
  return rows.take(EIGENVEIL_TRY(options_for_columns(projection.map.specs(), columns, rows.name(), {})));
}

Result<RowMajorMatrix> scores_of(const Projection& projection, RowSource& source, const std::string& name) {
  std::vector<double> all;
  const Sink sink = [&](const RowMajorMatrix& scores) -> Status {
    all.insert(all.end(), scores.data(), scores.data() + scores.size());
    return {};
  };
  EIGENVEIL_TRY(project(projection, source, name, sink, {}));
  const Eigen::Index width = projection.directions.rows.rows();
  return RowMajorMatrix(Eigen::Map<const RowMajorMatrix>(all.data(), all.size() / width, width));
}

Result<std::vector<std::string>> labels_of(const Model& model, const Projection& projection, RowSource& source,
                                           const std::string& name) {
  EIGENVEIL_TRY(check_predicts(model, predicts_classes));
  const Classifier classifier(model, projection);
  std::vector<std::string> labels;
  const Sink sink = [&](const RowMajorMatrix& scores) -> Status {
    for (Eigen::Index i = 0; i < scores.rows(); ++i) labels.push_back(classifier.label(scores.row(i)));
    return {};
  };
  EIGENVEIL_TRY(project(projection, source, name, sink, {}));
  return labels;
}

}  // namespace

Result<RowMajorMatrix> scores(const Model& model, GivenRows& rows) {
  const auto projection = EIGENVEIL_TRY(projection_of(model));
  return scores_of(projection, *EIGENVEIL_TRY(open_rows(projection, rows)), rows.name());
}

Result<RowMajorMatrix> scores(const Model& model, const std::string& data_path, const SourceOptions& options) {
  const auto projection = EIGENVEIL_TRY(projection_of(model));
  return scores_of(projection, *EIGENVEIL_TRY(open_rows(projection, data_path, options)), data_path);
}

Result<std::vector<std::string>> predictions(const Model& model, GivenRows& rows) {
  const auto projection = EIGENVEIL_TRY(projection_of(model));
  return labels_of(model, projection, *EIGENVEIL_TRY(open_rows(projection, rows)), rows.name());
}

Result<std::vector<std::string>> predictions(const Model& model, const std::string& data_path,
                                             const SourceOptions& options) {
  const auto projection = EIGENVEIL_TRY(projection_of(model));
  return labels_of(model, projection, *EIGENVEIL_TRY(open_rows(projection, data_path, options)), data_path);
}

HeaderRule header_named_by_model(const Model& model) {
  const auto columns = model.manifest.is_object() ? model.manifest.find("columns") : model.manifest.end();
  if (!model.manifest.is_object() || columns == model.manifest.end()) return HeaderRule::kUnstated;
  const auto specs = columns_from_json(*columns);
  return specs.ok() ? header_named_by(Schema{*specs}.names()) : HeaderRule::kUnstated;
}

Result<std::size_t> transform(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                              const std::string& out_path, const std::function<void(double)>& progress) {
  const auto projection = projection_of(model);
  if (!projection.ok()) return projection.error();
  EIGENVEIL_TRY(check_output(data_path, out_path));
  auto out = ScoreFile::create(out_path, projection->directions.names);
  if (!out.ok()) return out.error();
  auto source = open_rows(*projection, data_path, source_options);
  if (!source.ok()) return source.error();
  const Sink sink = [&](const RowMajorMatrix& scores) { return out->append(scores); };
  EIGENVEIL_TRY(project(*projection, **source, data_path, sink, progress));
  EIGENVEIL_TRY(out->commit());
  return out->rows();
}

Result<std::size_t> predict(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                            const std::string& out_path, const std::function<void(double)>& progress) {
  const auto projection = projection_of(model);
  if (!projection.ok()) return projection.error();
  EIGENVEIL_TRY(check_predicts(model, predicts));
  if (kind_of(model.manifest).prediction == Prediction::kNumber)
    return transform(model, data_path, source_options, out_path, progress);
  EIGENVEIL_TRY(check_output(data_path, out_path));
  if (std::filesystem::path(out_path).extension() != ".csv")
    return usage_error(fmt::format("{}: predicted labels are written as .csv. Choose a name that ends so.", out_path));
  auto out = AtomicFile::create(out_path);
  if (!out.ok()) return out.error();
  auto source = open_rows(*projection, data_path, source_options);
  if (!source.ok()) return source.error();
  const Classifier classifier(model, *projection);
  std::size_t rows = 0;
  EIGENVEIL_TRY(out->append("class\n"));
  const Sink sink = [&](const RowMajorMatrix& scores) {
    std::string text;
    for (Eigen::Index i = 0; i < scores.rows(); ++i) text += csv_cell(classifier.label(scores.row(i))) + "\n";
    rows += scores.rows();
    return out->append(text);
  };
  EIGENVEIL_TRY(project(*projection, **source, data_path, sink, progress));
  EIGENVEIL_TRY(out->commit());
  return rows;
}

}  // namespace eigenveil
