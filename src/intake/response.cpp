// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/response.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rows_at_hand.hpp"

namespace eigenveil {

Status put_response_last(const RowsAtHand& rows, const std::string& place, const Response& response,
                         SourceOptions& source, std::optional<Schema>& schema) {
  const auto own_name = EIGENVEIL_TRY(rows.names({response.column}));
  if (own_name.size() != 1)
    return usage_error(fmt::format("'{}' is more than one column; the target is one", response.column));
  const std::string& name = own_name.front();
  if (schema) {
    const auto found = std::find_if(schema->columns.begin(), schema->columns.end(),
                                    [&](const ColumnSpec& one) { return one.name == name; });
    if (found == schema->columns.end())
      return usage_error(fmt::format("the target '{}' is not in the schema: describe it there, with its range", name));
    std::rotate(found, found + 1, schema->columns.end());
    source.columns = schema->names();
  } else {
    source.columns = EIGENVEIL_TRY(rows.names(source.columns));
    std::erase(source.columns, name);
    source.columns.push_back(name);
  }
  if (source.columns.size() > 1) return {};
  return bad_input(fmt::format("{}: there is no column but '{}' to explain it with", place, name));
}

ResponseShares default_shares(const RowOptions& rows, const ColumnMap& map) {
  const auto d = static_cast<double>(map.raw_columns() - 1);  // each about as long as a number, categorical or not
  const double largest = map.largest_norm();
  // The response alone has a largest feature of 1.
  const double A = rows.row_bound ? std::pow(rows.row_bound->value(), 2) / 1.5 : (largest * largest - 1) * (1 + 1 / d);
  return {std::sqrt(A / 2), std::sqrt(A / (d + 1))};
}

Result<ColumnMap> map_with(const ResponseShares& shares, const ColumnMap& map) {
  const ColumnSpec& last = map.specs().back();
  const auto* numeric = std::get_if<NumericColumn>(&last.kind);
  if (numeric == nullptr)
    return usage_error(fmt::format("the target '{}' is categorical, and regress explains numbers; see fda", last.name));
  if (!std::isfinite(map.largest_norm()))
    return usage_error("regress needs public ranges: give `ranges` LO:HI (or COLUMN=LO:HI) or a `schema`");
  // Shares come from proposals too: nothing beyond what a lattice can hold.
  constexpr double kMost = 1e6;
  for (const double factor : {shares.weight, shares.constant})
    if (!(factor >= 1 / kMost && factor <= kMost))
      return bad_input("the weight and the constant of a response lie between a millionth and a million");
  return map.with_response(shares.weight, shares.constant);
}

}  // namespace eigenveil
