// SPDX-License-Identifier: Apache-2.0
#include "directions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/base/printable.hpp"
#include "extents.hpp"

namespace eigenveil {
namespace {

/// K x d, however it is stored.
Matrix rows_of(const Model& model, const ModelKind& kind, std::string_view name) {
  const Matrix& stored = *model.array(std::string(name));
  for (const ModelArray& shape : kind.arrays)
    if (shape.name == name && shape.columns == Extent::kDirections) return stored.transpose();
  return stored;
}

/// One direction, and what makes its score the prediction in the target's own units:
///   intercept + sum coefficient (feature / scale + offset)
Result<DirectionSet> prediction_of(const Model& model, const Scores& scores, const std::string& where) {
  const auto vector = [&](const char* name) { return Vector(model.array(name)->reshaped()); };
  const Vector slopes = vector(scores.directions.data());
  const Vector weights = slopes.cwiseQuotient(vector("scale"));
  const double shift = vector("intercept")[0] + slopes.dot(vector("offset")) + weights.dot(vector("mean"));
  if (!weights.allFinite() || !std::isfinite(shift))
    return bad_input(fmt::format("{}: '{}' and 'scale' make no finite prediction.", where, scores.directions));
  return DirectionSet{weights.transpose(), {std::string(scores.name)}, {}, Vector::Constant(1, shift)};
}

}  // namespace

Result<DirectionSet> directions_of(const Model& model, const std::string& where) {
  EIGENVEIL_TRY(validate(model, where));
  const ModelKind& kind = kind_of(model.manifest);
  if (kind.scores.empty())
    return bad_input(fmt::format("{}: rows have no scores under a model {}; they have under {}.", where,
                                 quote(model.manifest["model"].get<std::string>()),
                                 kinds_in_words([](const ModelKind& one) { return !one.scores.empty(); })));
  if (kind.prediction == Prediction::kNumber) return prediction_of(model, kind.scores.front(), where);
  const Extents extents = EIGENVEIL_TRY(extents_of(model, where));
  const Eigen::Index K = *extents.of(Extent::kDirections);
  const Eigen::Index sets = kind.scores.size();
  DirectionSet all{Matrix::Zero(sets * K, *extents.of(Extent::kFeatures)), {}, {}};
  Eigen::Index column = 0;
  for (Eigen::Index i = 0; i < sets; ++i) {
    const Scores& scores = kind.scores[i];
    const Matrix rows = rows_of(model, kind, scores.directions);
    all.rows.block(i * K, column, K, rows.cols()) = rows;
    column += rows.cols();
    for (Eigen::Index k = 1; k <= K; ++k) all.names.push_back(fmt::format("{}{}", scores.name, k));
  }
  if (!kind.values.empty()) all.values = model.array(std::string(kind.values))->reshaped().replicate(sets, 1);
  return all;
}

}  // namespace eigenveil
