#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/schema.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

struct RowOptions;

/// The column that sorts rows into classes (its label), or into slices (a response, by public cuts). It is no feature.
struct ClassColumn {
  std::string column;                ///< name or 1-based position
  std::vector<std::string> classes;  ///< public labels; empty: those of the schema, or slices
  bool drop_unlisted = false;        ///< a row with another label counts as the zero row of no class
  std::vector<double> cuts;          ///< slices: ascending
};

/// How to open the data so that the class column comes last, after the features.
struct ClassedColumns {
  SourceOptions source;
  std::optional<Schema> schema;      ///< of the features
  std::vector<std::string> classes;  ///< labels, or slices in words
};

Result<ClassedColumns> with_class_column(const RowOptions& rows, const SourceOptions& given,
                                         const std::optional<Schema>& schema, const ClassColumn& column);

/// The cuts between so many slices of equal width.
std::vector<double> equal_cuts(const NumericColumn& range, std::size_t slices);

/// The names of the columns that a list of names, positions and ranges means.
Result<std::vector<std::string>> column_names(const RowOptions& rows, const SourceOptions& given,
                                              const std::vector<std::string>& columns);

}  // namespace eigenveil
