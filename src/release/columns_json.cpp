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
  NumericColumn column{*lower, *upper};
  if (const auto missing = entry.find("missing"); missing != entry.end()) {
    if (!missing->is_number()) return bad_input("'missing' is not a number");
    column.missing = missing->get<double>();
  }
  return column;
}

/// Which of the values a key names; none where it is absent or null.
Result<std::optional<std::size_t>> value_from_json(const json& entry, const char* key,
                                                   const std::vector<std::string>& values) {
  const auto named = entry.find(key);
  if (named == entry.end() || named->is_null()) return std::optional<std::size_t>();
  for (std::size_t i = values.size(); i-- > 0;)
    if (*named == values[i]) return std::optional(i);
  return bad_input(fmt::format("'{}' is not one of its values", key));
}

Result<CategoricalColumn> categorical_from_json(const json& entry) {
  const auto values = entry.find("values");
  if (values == entry.end() || !values->is_array() || values->empty()) return bad_input("it has no list of 'values'");
  CategoricalColumn column;
  for (const auto& value : *values) {
    if (!value.is_string()) return bad_input("a value in 'values' is not text");
    column.values.push_back(value.get<std::string>());
  }
  column.other = EIGENVEIL_TRY(value_from_json(entry, "other", column.values));
  const auto missing = entry.find("missing");
  if (missing != entry.end() && *missing == true)
    column.missing = column.values.size();
  else
    column.missing = EIGENVEIL_TRY(value_from_json(entry, "missing", column.values));
  if (const auto weight = entry.find("weight"); weight != entry.end()) {
    if (!weight->is_number()) return bad_input("'weight' is not a number");
    column.weight = weight->get<double>();
  }
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
      if (numeric->missing) entry["missing"] = *numeric->missing;
    } else {
      const auto& categorical = std::get<CategoricalColumn>(spec.kind);
      entry["kind"] = "categorical";
      entry["values"] = categorical.values;
      if (categorical.other) entry["other"] = categorical.values[*categorical.other];
      entry["weight"] = categorical.weight;
      // true: all of them, in equal parts
      if (const auto& missing = categorical.missing)
        entry["missing"] = *missing < categorical.values.size() ? json(categorical.values[*missing]) : json(true);
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
