// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "eigenveil/base/result.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// A number between public bounds; values outside are clamped.
struct NumericColumn {
  double lower;
  double upper;
  std::optional<double> missing = {};  ///< what a missing value counts as, where a rule says that it counts
};

/// One of a public list of values; becomes one 0/1 column per value. All of them together are as long as `weight`
/// numbers (column_map.hpp).
struct CategoricalColumn {
  std::vector<std::string> values;
  std::optional<std::size_t> other = {};  ///< index into `values` that stands for every value not listed
  double weight = 1;
  /// Likewise for a missing value, where a rule says that it counts; values.size(): for all of them, in equal parts.
  std::optional<std::size_t> missing = {};
};

struct ColumnSpec {
  std::string name;
  std::variant<NumericColumn, CategoricalColumn> kind;
};

/// What a person says in public about the columns, before any row is read. Columns of the file that are not
/// listed are not used.
struct Schema {
  std::vector<ColumnSpec> columns;
  HeaderRule header = HeaderRule::kUnstated;  ///< of a CSV file
  char delimiter = '\0';                      ///< of a CSV file; '\0': not stated
  std::size_t fields = 0;                     ///< of a line of a CSV file without a header; 0: not stated

  std::vector<std::string> names() const;
  std::vector<Categories> categories() const;  ///< of the categorical columns, for `SourceOptions`
};

/// Public rules for values that are missing.
enum class MissingRule {
  kNone,      ///< a row has no place without them
  kValue,     ///< a number is what the schema says, or the middle of its range (0 without one); a category what the
              ///< schema says, or all of them in equal parts
  kCategory,  ///< the same, but a category that is missing is one of its own, "missing", if the schema names none
};

/// The schema with what a missing value counts as stated for every column, or for none. Twice is as good as once.
Schema with_missing(Schema schema, MissingRule rule);

/// What a list of public column names says about the first line: it must hold them, so there is a header. Names that a
/// record could hold as well, or that are positions ("3", "1-50", "NA"), say nothing.
HeaderRule header_named_by(const std::vector<std::string>& names);

/// How to open the file that a schema describes: the schema's columns, and what it states of a CSV file beside what
/// `given` states. Refuses statements that contradict each other.
Result<SourceOptions> options_for(const Schema& schema, const SourceOptions& given);

/// Reads a TOML schema:
///   header = "yes"             # of a CSV file: its first line holds these names. Optional if names are no numbers
///   delimiter = "semicolon"    # optional: comma, semicolon, tab, bar, space, or a character
///   fields = 12                # header = "no": how many fields a line has; optional
///   [[column]]
///   name = "age"
///   kind = "numeric"
///   lower = 0
///   upper = 120
///   missing = 40               # optional: what `missing` value counts a missing one as; default: the middle
///   [[column]]
///   name = "sex"
///   kind = "categorical"
///   values = ["F", "M", "unknown"]
///   other = "unknown"          # optional
///   missing = "unknown"        # optional: likewise, of `missing` value and category
///   weight = 1                 # optional: how long all its values are together, in numbers
Result<Schema> read_schema(const std::string& path);

/// The text of a schema with the names of the columns, kinds, bounds and values left for a person: what `eigenveil
/// schema init` prints. No row is looked at, but for the number of fields in the first line of a CSV file without a
/// header.
Result<std::string> schema_template(const std::string& path, const SourceOptions& options);

/// "tab", "semicolon", ... or a single character; nothing for other words.
std::optional<char> delimiter_from_name(const std::string& name);

}  // namespace eigenveil
