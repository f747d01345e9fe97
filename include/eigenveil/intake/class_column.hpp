// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/schema.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

class RowsAtHand;

/// The column that sorts rows into classes (its label), or into slices (a response, by public cuts). It is no feature.
struct ClassColumn {
  std::string column;                       ///< name or 1-based position
  std::vector<std::string> classes;         ///< public labels; empty: those of the schema, or slices
  bool drop_unlisted = false;               ///< a row with another label counts as the zero row of no class
  std::vector<double> cuts;                 ///< slices: ascending; or else
  std::size_t slices = 0;                   ///< so many of equal width
  std::optional<NumericColumn> range = {};  ///< between these; none: the schema's bounds
};

/// How to open the data so that the class column comes last, after the features.
struct ClassedColumns {
  SourceOptions source;
  std::optional<Schema> schema;      ///< of the features
  std::vector<std::string> classes;  ///< labels, or slices in words
  std::string name;                  ///< of the class column
  std::vector<double> cuts;          ///< between slices
};

/// `place`: what messages call the rows.
Result<ClassedColumns> with_class_column(const RowsAtHand& rows, const std::string& place, const SourceOptions& given,
                                         const std::optional<Schema>& schema, const ClassColumn& column);

/// The cuts between so many slices of equal width.
std::vector<double> equal_cuts(const NumericColumn& range, std::size_t slices);

}  // namespace eigenveil
