// SPDX-License-Identifier: Apache-2.0
#include "selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "text.hpp"

namespace eigenveil::data {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Resolves what a person writes - a name, "3" or "1-50" - to positions in one file.
class Resolver {
 public:
  Resolver(const std::string& path, const FileColumns& file) : path_(path), file_(file) {
    for (std::size_t i = 0; i < file.names.size(); ++i) {
      const auto [entry, is_new] = by_name_.try_emplace(file.name(i), i);
      if (!is_new) doubled_.insert(entry->first);
    }
  }

  Result<std::vector<std::size_t>> resolve(const std::string& wanted) const {
    if (doubled_.contains(wanted))
      return bad_input(fmt::format("{}: the header has more than one column {}; choose by position (1 to {}) instead",
                                   path_, in_quotes(wanted), file_.count));
    if (const auto found = by_name_.find(wanted); found != by_name_.end()) return std::vector{found->second};
    const std::size_t dash = wanted.find('-');
    const auto first = whole_number(std::string_view(wanted).substr(0, dash));
    const auto last = dash == std::string::npos ? first : whole_number(std::string_view(wanted).substr(dash + 1));
    if (!first || !last || *first < 1 || *last < *first || *last > file_.count) return unknown(wanted);
    std::vector<std::size_t> positions;
    for (std::size_t i = *first; i <= *last; ++i) positions.push_back(i - 1);
    return positions;
  }

 private:
  Error unknown(const std::string& wanted) const {
    if (file_.names.empty())
      return bad_input(
          fmt::format("{}: there is no column {}; the file has {} columns without names: choose by position, "
                      "1 to {}",
                      path_, in_quotes(wanted), file_.count, file_.count));
    return bad_input(fmt::format("{}: there is no column {}; the file has {} columns: {}", path_, in_quotes(wanted),
                                 file_.count, some_of(file_.names)));
  }

  const std::string& path_;
  const FileColumns& file_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_set<std::string> doubled_;
};

Result<std::vector<std::size_t>> chosen_positions(const std::string& path, const FileColumns& file,
                                                  const Resolver& resolver, const std::vector<std::string>& wanted) {
  std::vector<std::size_t> positions;
  for (const std::string& one : wanted) {
    const auto found = resolver.resolve(one);
    if (!found.ok()) return found.error();
    positions.insert(positions.end(), found->begin(), found->end());
    if (positions.size() > file.count) break;  // a doubled column, reported by the caller
  }
  if (wanted.empty())
    for (std::size_t i = 0; i < file.count; ++i) positions.push_back(i);
  std::unordered_set<std::string> seen;
  for (std::size_t position : positions)
    if (!seen.insert(file.name(position)).second)
      return bad_input(fmt::format("{}: column {} is {} twice; every column can be used once", path,
                                   in_quotes(file.name(position)), wanted.empty() ? "named" : "chosen"));
  return positions;
}

Status check(const Categories& categories) {
  if (categories.values.empty())
    return usage_error(
        fmt::format("The categories of column {} are empty; list its public values", in_quotes(categories.column)));
  if (categories.other && *categories.other >= categories.values.size())
    return usage_error(fmt::format("`other` of column {} is not one of its {} values", in_quotes(categories.column),
                                   categories.values.size()));
  return {};
}

}  // namespace

CategoryIndex::CategoryIndex(const Categories& categories) : values_(categories.values), other_(categories.other) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    by_text_.try_emplace(values_[i], i);
    const std::optional<double> number = parse_number(values_[i]);
    if (!number) continue;
    if (std::isnan(*number))
      nan_ = nan_.value_or(i);
    else
      by_number_.try_emplace(*number, i);
  }
}

std::optional<double> CategoryIndex::unlisted(bool missing) const {
  if (missing) return kMissing;
  if (other_) return static_cast<double>(*other_);
  return std::nullopt;
}

std::optional<double> CategoryIndex::of_text(std::string_view text) const {
  if (const auto found = by_text_.find(text); found != by_text_.end()) return static_cast<double>(found->second);
  if (is_missing(text)) return kMissing;
  if (!by_number_.empty())
    if (const std::optional<double> number = parse_number(text)) return of_number(*number);
  return unlisted(false);
}

std::optional<double> CategoryIndex::of_number(double number) const {
  if (std::isnan(number)) return nan_ ? std::optional(static_cast<double>(*nan_)) : unlisted(true);
  if (const auto found = by_number_.find(number); found != by_number_.end()) return static_cast<double>(found->second);
  return unlisted(false);
}

Result<Selection> select_columns(const std::string& path, const FileColumns& file, const SourceOptions& options) {
  const Resolver resolver(path, file);
  Result<std::vector<std::size_t>> positions = chosen_positions(path, file, resolver, options.columns);
  if (!positions.ok()) return positions.error();
  Selection selection;
  selection.positions = std::move(*positions);
  selection.categories.resize(selection.positions.size());
  std::unordered_map<std::size_t, std::size_t> place;
  for (std::size_t i = 0; i < selection.positions.size(); ++i) {
    selection.names.push_back(file.name(selection.positions[i]));
    place.emplace(selection.positions[i], i);
  }
  if (options.person) {
    const auto person = EIGENVEIL_TRY(resolver.resolve(options.person->column));
    if (person.size() != 1)
      return usage_error(
          fmt::format("{} is more than one column; a person's id is in one", in_quotes(options.person->column)));
    selection.person = person.front();
    selection.whose = *options.person;
    if (place.contains(person.front()))
      return usage_error(
          fmt::format("{}: column {} says whose row it is, so it cannot be a feature too: choose the other columns",
                      path, in_quotes(file.name(person.front()))));
  }
  for (const Categories& categories : options.categories) {
    EIGENVEIL_TRY(check(categories));
    const auto found = resolver.resolve(categories.column);
    if (!found.ok()) return found.error();
    for (std::size_t position : *found) {
      const auto at = place.find(position);
      if (at == place.end()) continue;  // categories of a column that is not used
      if (selection.categories[at->second])
        return usage_error(fmt::format("The categories of column {} are given twice", in_quotes(categories.column)));
      selection.categories[at->second].emplace(categories);
    }
  }
  return selection;
}

Status map_categories(double* values, std::size_t rows, std::size_t first, const Selection& selection, BadRows bad_rows,
                      const std::string& name) {
  const std::size_t width = selection.positions.size();
  for (std::size_t c = 0; c < width; ++c) {
    const std::optional<CategoryIndex>& categories = selection.categories[c];
    if (!categories) continue;
    for (std::size_t r = 0; r < rows; ++r) {
      double& value = values[r * width + c];
      const std::optional<double> index = categories->of_number(value);
      if (!index && bad_rows == BadRows::kError)
        return unlisted_value(fmt::format("{}: row {}, column '{}'", name, first + r + 1, selection.names[c]),
                              fmt::format("{}", value), *categories);
      value = index.value_or(kMissing);
    }
  }
  return {};
}

Error unlisted_value(const std::string& place, std::string_view text, const CategoryIndex& categories) {
  return bad_input(
      fmt::format("{}: {} is not among the listed values ({}); add it to the schema's values, or name one of "
                  "them as `other`",
                  place, in_quotes(text), some_of(categories.values())));
}

}  // namespace eigenveil::data
