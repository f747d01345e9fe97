#include "eigenveil/data/schema.hpp"

#include <fmt/format.h>

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

}  // namespace

std::optional<std::string> problem_of(const ColumnSpec& spec) {
  if (spec.name.empty()) return "the name is empty";
  return std::visit([](const auto& kind) { return problem_of(kind); }, spec.kind);
}

}  // namespace data

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
