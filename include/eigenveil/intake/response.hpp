// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/column_map.hpp"
#include "eigenveil/data/schema.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

struct RowOptions;
class RowsAtHand;

/// How a row z = (x, weight y, constant) shares its length. Public choices of a study.
struct ResponseShares {
  double weight;
  double constant;
};

/// The column that the others are to explain: it becomes the last of them, and every row has a constant behind it.
struct Response {
  std::string column;                         ///< name or 1-based position
  std::optional<ResponseShares> shares = {};  ///< none: those of `default_shares`
};

/// Puts the response last among the columns to open, and among those of the schema.
/// `place`: what messages call the rows.
Status put_response_last(const RowsAtHand& rows, const std::string& place, const Response& response,
                         SourceOptions& source, std::optional<Schema>& schema);

/// With A for (x, constant) the response is worth A / 2 and the constant as much as one of the columns; the longest row
/// is sqrt(1.5 A). Why: src/estimators/regress/regress.proof.md.
ResponseShares default_shares(const RowOptions& rows, const ColumnMap& map);

/// The map of columns of which the last is the response, a number within public bounds.
Result<ColumnMap> map_with(const ResponseShares& shares, const ColumnMap& map);

}  // namespace eigenveil
