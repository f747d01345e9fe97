// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "eigenveil/release/model.hpp"

namespace eigenveil {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

json bound_to_json(double bound) { return std::isfinite(bound) ? json(bound) : json(nullptr); }

/// A bound that is absent or null is none at all.
Result<double> bound_from_json(const json& entry, const char* key, double none) {
  const auto bound = entry.find(key);
  if (bound == entry.end() || bound->is_null()) return none;
  if (!bound->is_number()) return bad_input(fmt::format("'{}' is not a number", key));
  return bound->get<double>();
}

Result<NumericColumn> numeric_from_json(const json& entry) {
  const auto lower = bound_from_json(entry, "lower", -kInfinity);
  if (!lower.ok()) return lower.error();
  const auto upper = bound_from_json(entry, "upper", kInfinity);
  if (!upper.ok()) return upper.error();
  if (*lower > *upper) return bad_input(fmt::format("its lower bound {} is above its upper bound {}", *lower, *upper));
  return NumericColumn{*lower, *upper};
}

Result<CategoricalColumn> categorical_from_json(const json& entry) {
  const auto values = entry.find("values");
  if (values == entry.end() || !values->is_array() || values->empty()) return bad_input("it has no list of 'values'");
  CategoricalColumn column;
  for (const auto& value : *values) {
    if (!value.is_string()) return bad_input("a value in 'values' is not text");
    column.values.push_back(value.get<std::string>());
  }
  const auto other = entry.find("other");
  if (other == entry.end() || other->is_null()) return column;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    if (*other == column.values[i]) column.other = i;
  }
  if (!column.other) return bad_input("'other' is not one of its values");
  return column;
}

Result<ColumnSpec> column_from_json(const json& entry) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) return bad_input("it has no name");
  ColumnSpec spec{entry["name"].get<std::string>(), NumericColumn{-kInfinity, kInfinity}};
  const auto kind = entry.find("kind");
  if (kind != entry.end() && *kind == "numeric") {
    auto column = numeric_from_json(entry);
    if (!column.ok()) return column.error();
    spec.kind = *column;
  } else if (kind != entry.end() && *kind == "categorical") {
    auto column = categorical_from_json(entry);
    if (!column.ok()) return column.error();
    spec.kind = *std::move(column);
  } else {
    return bad_input("its kind is neither \"numeric\" nor \"categorical\"");
  }
  return spec;
}

}  // namespace

json columns_to_json(const std::vector<ColumnSpec>& specs) {
  json columns = json::array();
  for (const auto& spec : specs) {
    json entry = {{"name", spec.name}};
    if (const auto* numeric = std::get_if<NumericColumn>(&spec.kind)) {
      entry["kind"] = "numeric";
      entry["lower"] = bound_to_json(numeric->lower);
      entry["upper"] = bound_to_json(numeric->upper);
    } else {
      const auto& categorical = std::get<CategoricalColumn>(spec.kind);
      entry["kind"] = "categorical";
      entry["values"] = categorical.values;
      if (categorical.other) entry["other"] = categorical.values[*categorical.other];
    }
    columns.push_back(std::move(entry));
  }
  return columns;
}

Result<std::vector<ColumnSpec>> columns_from_json(const json& columns) {
  if (!columns.is_array()) return bad_input("'columns' in the manifest is not a list.");
  std::vector<ColumnSpec> specs;
  for (const auto& entry : columns) {
    auto spec = column_from_json(entry);
    if (!spec.ok()) {
      return bad_input(
          fmt::format("Column {} of 'columns' in the manifest: {}.", specs.size() + 1, spec.error().message));
    }
    specs.push_back(*std::move(spec));
  }
  return specs;
}

}  // namespace eigenveil
