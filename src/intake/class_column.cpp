// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/class_column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rows_at_hand.hpp"

namespace eigenveil {
namespace {

constexpr const char* kUnlisted = "(any other label)";

std::vector<std::string> slices_in_words(const std::vector<double>& cuts) {
  std::vector<std::string> words = {fmt::format("below {:g}", cuts.front())};
  for (std::size_t i = 1; i < cuts.size(); ++i) words.push_back(fmt::format("{:g} to {:g}", cuts[i - 1], cuts[i]));
  words.push_back(fmt::format("{:g} and more", cuts.back()));
  return words;
}

Status check_cuts(const std::vector<double>& cuts) {
  for (std::size_t i = 0; i < cuts.size(); ++i)
    if (!std::isfinite(cuts[i]) || (i > 0 && !(cuts[i - 1] < cuts[i])))
      return usage_error("`cuts` must be numbers that ascend, for example 1,2,3");
  return {};
}

Status check_classes(const std::vector<std::string>& classes) {
  if (classes.size() < 2) return usage_error("`classes` must list at least two labels, separated by a bar: A|B|C");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].empty()) return usage_error("`classes` has an empty label");
    if (std::find(classes.begin(), classes.begin() + i, classes[i]) != classes.begin() + i)
      return usage_error(fmt::format("`classes` lists '{}' twice", classes[i]));
  }
  return {};
}

// The labels of a classifying column: given, or those of the schema.
Result<std::vector<std::string>> labels_of(const ClassColumn& column, const ColumnSpec* spec) {
  std::vector<std::string> classes = column.classes;
  if (classes.empty() && spec != nullptr)
    if (const auto* categorical = std::get_if<CategoricalColumn>(&spec->kind)) classes = categorical->values;
  if (classes.empty())
    return usage_error(
        fmt::format("the classes of column '{}' are not known: list them with `classes` A|B|C, or "
                    "describe it as categorical in a `schema`",
                    column.column));
  EIGENVEIL_TRY(check_classes(classes));
  return classes;
}

// The public range of the response: given, or in the schema.
Result<NumericColumn> range_of(const ClassColumn& column, const std::string& name, const ColumnSpec* spec) {
  if (column.range) return *column.range;
  if (spec != nullptr)
    if (const auto* numeric = std::get_if<NumericColumn>(&spec->kind)) return *numeric;
  return usage_error(
      fmt::format("slices of equal width need the public range of the response '{}': give "
                  "`response_range` LO:HI or a schema that has it, or give `cuts`",
                  name));
}

}  // namespace

std::vector<double> equal_cuts(const NumericColumn& range, std::size_t slices) {
  std::vector<double> cuts;
  for (std::size_t i = 1; i < slices; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(slices);
    cuts.push_back(range.lower + share * (range.upper - range.lower));
  }
  return cuts;
}

Result<ClassedColumns> with_class_column(const RowsAtHand& rows, const std::string& place, const SourceOptions& given,
                                         const std::optional<Schema>& schema, const ClassColumn& column) {
  const auto own_name = EIGENVEIL_TRY(rows.names({column.column}));
  if (own_name.size() != 1)
    return usage_error(fmt::format("'{}' is more than one column; the class or response is one", column.column));
  const std::string& name = own_name.front();

  ClassedColumns result{given, schema, {}, name, column.cuts};
  const ColumnSpec* spec = nullptr;
  auto features = EIGENVEIL_TRY(schema ? Result<std::vector<std::string>>(schema->names()) : rows.names(given.columns));
  std::erase(features, name);
  if (features.empty())
    return bad_input(fmt::format("{}: there is no column but '{}': nothing is left to work on", place, name));
  if (schema) {
    const auto found = std::find_if(schema->columns.begin(), schema->columns.end(),
                                    [&](const ColumnSpec& one) { return one.name == name; });
    if (found != schema->columns.end()) spec = &*found;
    std::erase_if(result.schema->columns, [&](const ColumnSpec& one) { return one.name == name; });
    result.source.categories = result.schema->categories();
  }
  result.source.columns = features;
  result.source.columns.push_back(name);

  if (column.slices > 0) result.cuts = equal_cuts(EIGENVEIL_TRY(range_of(column, name, spec)), column.slices);
  if (!result.cuts.empty()) {
    EIGENVEIL_TRY(check_cuts(result.cuts));
    result.classes = slices_in_words(result.cuts);
    return result;
  }
  const auto classes = EIGENVEIL_TRY(labels_of(column, spec));
  result.classes = classes;
  // Whatever is not listed gets a number of its own, which BoundedRows refuses or drops.
  Categories categories{name, classes, classes.size()};
  categories.values.emplace_back(kUnlisted);
  result.source.categories.push_back(categories);
  return result;
}

}  // namespace eigenveil
