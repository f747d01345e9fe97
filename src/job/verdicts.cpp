// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "eigenveil/release/kinds.hpp"

namespace eigenveil {
namespace {

using nlohmann::json;

const ModelKind* kind_named(std::string_view name) {
  for (const ModelKind& kind : model_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

const NamedArray* find(const Fit& fit, std::string_view name) {
  const auto found =
      std::find_if(fit.arrays.begin(), fit.arrays.end(), [&](const NamedArray& array) { return array.name == name; });
  return found == fit.arrays.end() ? nullptr : &*found;
}

bool one_per_row(const ModelKind& kind, std::string_view array) {
  return std::any_of(kind.arrays.begin(), kind.arrays.end(),
                     [&](const ModelArray& shape) { return shape.name == array && shape.rows == Extent::kDirections; });
}

void add_vector(Fit& fit, std::string name, const Vector& values) {
  fit.arrays.push_back({std::move(name), values, true});
}

/// Deviations beside each array of directions, in its own shape. Views share the rows of `deviation` in their order.
void add_deviations(Fit& fit, const Matrix& deviation, const ModelKind& kind) {
  Eigen::Index taken = 0;
  for (const Scores& set : kind.scores) {
    const NamedArray* directions = find(fit, set.directions);
    if (directions == nullptr) continue;
    const bool rows = one_per_row(kind, set.directions);
    const Eigen::Index features = rows ? directions->values.cols() : directions->values.rows();
    if (taken + features > deviation.rows()) return;
    const Matrix part = deviation.middleRows(taken, features);
    taken += features;
    fit.arrays.push_back({fmt::format("{}_deviation", set.directions), rows ? Matrix(part.transpose()) : part});
  }
}

Vector angles(const Vector& cos2) {
  return cos2.unaryExpr(
      [](double c) { return std::acos(std::sqrt(std::clamp(c, 0.0, 1.0))) * 180 / std::numbers::pi; });
}

json banded_json(const Banded& banded) {
  return {{"value", banded.value}, {"lower", banded.low}, {"upper", banded.high}};
}

json in_json(const Verdict& verdict, const ModelKind& kind) {
  json standing = json::array();
  for (const Judged& one : verdict.judged) standing.push_back(name(one.standing));
  json object = {{"sentence", verdict_in_words(verdict.judged, kind.number)},
                 {"standing", std::move(standing)},
                 {"found", verdict.found},
                 {"how", verdict.drawn ? "draws" : "formula"}};
  if (verdict.has_total)
    object["explained"] = verdict.explained ? banded_json(*verdict.explained)
                                            : json{{"value", nullptr}, {"lower", nullptr}, {"upper", nullptr}};
  return object;
}

bool finite(const Verdict& verdict) {
  for (const Vector* one : {&verdict.estimate, &verdict.low, &verdict.high, &verdict.cos2, &verdict.share,
                            &verdict.share_low, &verdict.share_high})
    if (!one->allFinite()) return false;
  const Banded all = verdict.explained.value_or(Banded{});
  return verdict.deviation.allFinite() && std::isfinite(verdict.line) && std::isfinite(all.value) &&
         std::isfinite(all.low) && std::isfinite(all.high);
}

}  // namespace

void add_verdicts(Fit& fit, std::string_view name) {
  const ModelKind* kind = kind_named(name);
  if (!fit.judge || kind == nullptr) return;
  const auto verdict = fit.judge();
  if (!verdict) {
    fit.warnings.push_back(fmt::format("No verdict was found: {}.", verdict.error().message));
    return;
  }
  // A release that was paid for is not lost over what is said of it.
  if (!finite(*verdict)) {
    fit.warnings.emplace_back("No verdict was found: its numbers are too large or too small to compute with.");
    return;
  }
  const auto of_values = [&](const char* what) { return fmt::format("{}_{}", kind->values, what); };
  add_vector(fit, of_values("estimate"), verdict->estimate);
  add_vector(fit, of_values("low"), verdict->low);
  add_vector(fit, of_values("high"), verdict->high);
  add_deviations(fit, verdict->deviation, *kind);
  add_vector(fit, "angle", angles(verdict->cos2));
  const Eigen::Index count = verdict->judged.size();
  Vector standing(count), first(count), last(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Judged& one = verdict->judged[i];
    standing[i] = static_cast<double>(one.standing);
    first[i] = static_cast<double>(one.first);
    last[i] = static_cast<double>(one.last);
  }
  add_vector(fit, "verdict", standing);
  add_vector(fit, "verdict_first", first);
  add_vector(fit, "verdict_last", last);
  if (verdict->share.size() > 0) {
    add_vector(fit, "variance_share", verdict->share);
    add_vector(fit, "variance_share_low", verdict->share_low);
    add_vector(fit, "variance_share_high", verdict->share_high);
  }
  const std::size_t drowned = (standing.array() == static_cast<double>(Standing::kNoise)).count();
  // A covariance has as many directions as columns: nobody asked for them one by one.
  if (drowned > 0 && kind->many.starts_with("{}"))
    fit.warnings.push_back(drowned_warning(drowned, verdict->judged.size()));
  if (verdict->open && verdict->found > 0)
    fit.warnings.push_back(
        "Nearly every row is longer than the row bound that was found, so that how long rows are is hardly known: the "
        "bands of values end where the stated bounds do. Directions and shares do not suffer.");
  fit.facts["verdicts"] = in_json(*verdict, *kind);
  if (verdict->line > 0) fit.facts["noise_edge"] = verdict->line;
}

}  // namespace eigenveil
