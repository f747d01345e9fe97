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
};

/// One of a public list of values; becomes one 0/1 column a value.
struct CategoricalColumn {
  std::vector<std::string> values;
  std::optional<std::size_t> other = {};  ///< index into `values` that stands for every value not listed
};

struct ColumnSpec {
  std::string name;
  std::variant<NumericColumn, CategoricalColumn> kind;
};

/// What a person says in public about the columns, before any row is read. Columns of the file that are not
/// listed are not used.
struct Schema {
  std::vector<ColumnSpec> columns;

  std::vector<std::string> names() const;
  std::vector<Categories> categories() const;  ///< of the categorical columns, for `SourceOptions`
};

/// Reads a TOML schema:
///   [[column]]
///   name = "age"
///   kind = "numeric"
///   lower = 0
///   upper = 120
///   [[column]]
///   name = "sex"
///   kind = "categorical"
///   values = ["F", "M", "unknown"]
///   other = "unknown"          # optional
Result<Schema> read_schema(const std::string& path);

/// The text of a schema with names and kinds filled in and bounds and values left for a person: what
/// `eigenveil schema init` prints. Kinds are guessed from the first rows.
Result<std::string> schema_template(const std::string& path, const SourceOptions& options);

}  // namespace eigenveil
