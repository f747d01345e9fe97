#include "eigenveil/intake/class_column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "eigenveil/intake/rows.hpp"

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
      return usage_error("--cuts must be numbers that ascend, for example 1,2,3");
  return {};
}

Status check_classes(const std::vector<std::string>& classes) {
  if (classes.size() < 2) return usage_error("--classes must list at least two labels, separated by a bar: A|B|C");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].empty()) return usage_error("--classes has an empty label");
    if (std::find(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(i), classes[i]) !=
        classes.begin() + static_cast<std::ptrdiff_t>(i))
      return usage_error(fmt::format("--classes lists '{}' twice", classes[i]));
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
        fmt::format("the classes of column '{}' are not known: list them with --classes A|B|C, or "
                    "describe it as categorical in a --schema",
                    column.column));
  EIGENVEIL_TRY(check_classes(classes));
  return classes;
}

// "1-50" are the positions that name the columns of a file without names; everything else is a name.
Result<std::vector<std::string>> names_without_file(const std::vector<std::string>& columns) {
  constexpr std::size_t kMost = 1000000;
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    std::size_t first = 0;
    std::size_t last = 0;
    const char* end = column.data() + column.size();
    const auto low = std::from_chars(column.data(), end, first);
    const bool range = low.ec == std::errc() && low.ptr != end && *low.ptr == '-' &&
                       std::from_chars(low.ptr + 1, end, last).ptr == end && first >= 1 && last >= first;
    if (!range)
      names.push_back(column);
    else if (last > kMost)
      return usage_error(fmt::format("--columns {}: at most {} columns", column, kMost));
    else
      for (std::size_t i = first; i <= last; ++i) names.push_back(std::to_string(i));
  }
  if (names.empty())
    return usage_error(
        "the columns must be named where the rows are elsewhere: give a --schema, or --columns a,b,c or "
        "--columns 1-50 for files without names");
  return names;
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

Result<std::vector<std::string>> column_names(const RowOptions& rows, const SourceOptions& given,
                                              const std::vector<std::string>& columns) {
  if (elsewhere(rows)) return names_without_file(columns);
  if (rows.given) return rows.given->column_names(columns);
  SourceOptions options = given;
  options.columns = columns;
  options.categories.clear();
  const auto opened = EIGENVEIL_TRY(open_source(rows.data, options));
  return opened->columns();
}

Result<ClassedColumns> with_class_column(const RowOptions& rows, const SourceOptions& given,
                                         const std::optional<Schema>& schema, const ClassColumn& column) {
  const auto own_name = EIGENVEIL_TRY(column_names(rows, given, {column.column}));
  if (own_name.size() != 1)
    return usage_error(fmt::format("'{}' is more than one column; the class or response is one", column.column));
  const std::string& name = own_name.front();

  ClassedColumns result{given, schema, {}};
  const ColumnSpec* spec = nullptr;
  auto features = EIGENVEIL_TRY(schema ? Result<std::vector<std::string>>(schema->names())
                                       : column_names(rows, given, given.columns));
  std::erase(features, name);
  if (features.empty())
    return bad_input(fmt::format("{}: there is no column but '{}': nothing is left to work on", place_of(rows), name));
  if (schema) {
    const auto found = std::find_if(schema->columns.begin(), schema->columns.end(),
                                    [&](const ColumnSpec& one) { return one.name == name; });
    if (found != schema->columns.end()) spec = &*found;
    std::erase_if(result.schema->columns, [&](const ColumnSpec& one) { return one.name == name; });
    result.source.categories = result.schema->categories();
  }
  result.source.columns = features;
  result.source.columns.push_back(name);

  if (!column.cuts.empty()) {
    EIGENVEIL_TRY(check_cuts(column.cuts));
    result.classes = slices_in_words(column.cuts);
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
