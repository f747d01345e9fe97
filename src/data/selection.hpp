// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "eigenveil/data/table.hpp"

namespace eigenveil::data {

/// More columns than this are refused: names and one row must fit a few megabytes, whatever a header claims.
constexpr std::size_t kMostColumns = 1'000'000;

/// Finds the place of a value in a public list. The text decides; else the number that it spells, so that "1" stands
/// for 1.0 of a binary file or of a sloppy CSV.
class CategoryIndex {
 public:
  explicit CategoryIndex(const Categories& categories);

  /// Index in the list; NaN for a missing value; nothing for a value that is not listed.
  std::optional<double> of_text(std::string_view text) const;
  std::optional<double> of_number(double number) const;

  const std::vector<std::string>& values() const { return values_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::optional<double> unlisted(bool missing) const;

  std::vector<std::string> values_;
  std::optional<std::size_t> other_;
  std::optional<std::size_t> nan_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_text_;
  std::unordered_map<double, std::size_t> by_number_;
};

/// The columns that a source yields, in order.
struct Selection {
  std::vector<std::size_t> positions;  ///< 0-based, in the file
  std::vector<std::string> names;
  std::vector<std::optional<CategoryIndex>> categories;  ///< empty for a numeric column
  std::optional<std::size_t> person = {};                ///< position of the column that says whose row it is
  PersonColumn whose = {};                               ///< that column, if there is one
};

Result<Selection> select_columns(const std::string& path, const FileColumns& file, const SourceOptions& options);

/// Replaces the numbers in categorical columns by their place in the public list. `values`: the chosen columns of
/// `rows` rows, of which the first is the row `first` (from 0). A number that is not listed is an error, or missing.
Status map_categories(double* values, std::size_t rows, std::size_t first, const Selection& selection, BadRows bad_rows,
                      const std::string& name);

/// "FILE: row 3, column 'sex': 'X' is not among the values ..."
Error unlisted_value(const std::string& place, std::string_view text, const CategoryIndex& categories);

}  // namespace eigenveil::data
