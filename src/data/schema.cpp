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
namespace data {
namespace {

std::optional<std::string> problem_of(const NumericColumn& column) {
  if (!std::isfinite(column.lower) || !std::isfinite(column.upper))
    return fmt::format("lower and upper must be finite, but are {} and {}", column.lower, column.upper);
  if (column.lower >= column.upper)
    return fmt::format("lower must be less than upper, but they are {} and {}", column.lower, column.upper);
  return std::nullopt;
}

std::optional<std::string> problem_of(const CategoricalColumn& column) {
  if (column.values.empty()) return "values is empty; list every value that the column can publicly have";
  std::unordered_set<std::string> seen;
  for (const std::string& value : column.values)
    if (!seen.insert(value).second) return fmt::format("the value {} is listed twice", in_quotes(value));
  if (column.other && *column.other >= column.values.size()) return "other is not one of the values";
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
