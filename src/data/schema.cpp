// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "schema_check.hpp"
#include "text.hpp"

namespace eigenveil {
namespace {

constexpr const char* kMissingCategory = "missing";

}  // namespace

namespace data {
namespace {

constexpr double kLeastWeight = 1e-6;
constexpr double kMostWeight = 1e6;

std::optional<std::string> problem_of(const NumericColumn& column) {
  if (!std::isfinite(column.lower) || !std::isfinite(column.upper))
    return fmt::format("lower and upper must be finite, but are {} and {}", column.lower, column.upper);
  if (column.lower >= column.upper)
    return fmt::format("lower must be less than upper, but they are {} and {}", column.lower, column.upper);
  if (column.missing && !(*column.missing >= column.lower && *column.missing <= column.upper))
    return fmt::format("missing must lie between lower and upper, but is {}", *column.missing);
  return std::nullopt;
}

std::optional<std::string> problem_of(const CategoricalColumn& column) {
  if (column.values.empty()) return "values is empty; list every value that the column can publicly have";
  std::unordered_set<std::string> seen;
  for (const std::string& value : column.values)
    if (!seen.insert(value).second) return fmt::format("the value {} is listed twice", in_quotes(value));
  if (column.other && *column.other >= column.values.size()) return "other is not one of the values";
  if (column.missing && *column.missing > column.values.size()) return "missing is not one of the values";
  if (!(column.weight >= kLeastWeight && column.weight <= kMostWeight))
    return fmt::format("weight must lie between {:g} and {:g}, but is {}", kLeastWeight, kMostWeight, column.weight);
  return std::nullopt;
}

/// Whether a record could hold this text as well, or whether it is a position.
bool is_ambiguous(const std::string& name) {
  const bool position = name.find_first_not_of("0123456789-") == std::string::npos;
  return position || is_missing(name) || parse_number(name).has_value();
}

}  // namespace

std::optional<std::string> problem_of(const ColumnSpec& spec) {
  if (spec.name.empty()) return "the name is empty";
  return std::visit([](const auto& kind) { return problem_of(kind); }, spec.kind);
}

}  // namespace data

HeaderRule header_named_by(const std::vector<std::string>& names) {
  const bool named = !names.empty() && std::none_of(names.begin(), names.end(), data::is_ambiguous);
  return named ? HeaderRule::kYes : HeaderRule::kUnstated;
}

Result<SourceOptions> options_for(const Schema& schema, const SourceOptions& given) {
  SourceOptions options = given;
  options.columns = schema.names();
  options.categories = schema.categories();
  const auto differs = [](const char* what) {
    return usage_error(fmt::format("the schema and the options state another {} of the file: correct one", what));
  };
  if (options.header == HeaderRule::kUnstated)
    options.header = schema.header != HeaderRule::kUnstated ? schema.header : header_named_by(options.columns);
  else if (schema.header != HeaderRule::kUnstated && schema.header != options.header)
    return differs("header");
  if (options.delimiter == '\0')
    options.delimiter = schema.delimiter;
  else if (schema.delimiter != '\0' && schema.delimiter != options.delimiter)
    return differs("delimiter");
  if (options.fields == 0)
    options.fields = schema.fields;
  else if (schema.fields != 0 && schema.fields != options.fields)
    return differs("number of fields");
  return options;
}

std::optional<char> delimiter_from_name(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, char>, 6> kNames = {
      {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"\\t", '\t'}, {"bar", '|'}, {"space", ' '}}};
  if (name.size() == 1) return name[0];
  for (const auto& [known, character] : kNames)
    if (name == known) return character;
  return std::nullopt;
}

Schema with_missing(Schema schema, MissingRule rule) {
  for (ColumnSpec& spec : schema.columns) {
    if (auto* numeric = std::get_if<NumericColumn>(&spec.kind)) {
      const bool ranged = std::isfinite(numeric->lower) && std::isfinite(numeric->upper);
      // halves first: lower + upper may overflow
      const double middle = ranged ? numeric->lower / 2 + numeric->upper / 2 : 0;
      numeric->missing = rule == MissingRule::kNone ? std::nullopt : std::optional(numeric->missing.value_or(middle));
      continue;
    }
    auto& categorical = std::get<CategoricalColumn>(spec.kind);
    auto& values = categorical.values;
    if (rule == MissingRule::kNone) {
      categorical.missing.reset();
    } else if (!categorical.missing && rule == MissingRule::kValue) {
      categorical.missing = values.size();
    } else if (!categorical.missing) {
      const auto found = std::find(values.begin(), values.end(), kMissingCategory);
      categorical.missing = found - values.begin();
      if (found == values.end()) values.emplace_back(kMissingCategory);
    }
  }
  return schema;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> all;
  all.reserve(columns.size());
  for (const ColumnSpec& column : columns) all.push_back(column.name);
  return all;
}

std::vector<Categories> Schema::categories() const {
  std::vector<Categories> all;
  for (const ColumnSpec& column : columns)
    if (const auto* kind = std::get_if<CategoricalColumn>(&column.kind))
      all.push_back({column.name, kind->values, kind->other});
  return all;
}

}  // namespace eigenveil
