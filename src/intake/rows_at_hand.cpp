// SPDX-License-Identifier: Apache-2.0
#include "rows_at_hand.hpp"

#include <fmt/format.h>

#include <charconv>

namespace eigenveil {
namespace {

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
      return usage_error(fmt::format("`columns` {}: at most {} columns", column, kMost));
    else
      for (std::size_t i = first; i <= last; ++i) names.push_back(std::to_string(i));
  }
  if (names.empty())
    return usage_error(
        "the columns must be named where the rows are elsewhere: give a `schema`, or `columns` a,b,c or "
        "`columns` 1-50 for files without names");
  return names;
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

Result<RowsAtHand> RowsAtHand::open(const RowOptions& rows, const SourceOptions& source) {
  if (elsewhere(rows)) return RowsAtHand(Elsewhere{});
  if (rows.given) return RowsAtHand(rows.given);
  return RowsAtHand(EIGENVEIL_TRY(Table::open(rows.data, source)));
}

Result<std::vector<std::string>> RowsAtHand::names(const std::vector<std::string>& columns) const {
  return std::visit(Overloaded{
                        [&](const Elsewhere&) { return names_without_file(columns); },
                        [&](const std::shared_ptr<GivenRows>& given) { return given->column_names(columns); },
                        [&](const Table& table) { return table.column_names(columns); },
                    },
                    holder_);
}

Result<std::unique_ptr<RowSource>> RowsAtHand::take(const SourceOptions& options) {
  return std::visit(Overloaded{
                        [](const Elsewhere&) { return Result<std::unique_ptr<RowSource>>(nullptr); },
                        [&](const std::shared_ptr<GivenRows>& given) { return given->take(options); },
                        [&](Table& table) { return table.take(options); },
                    },
                    holder_);
}

}  // namespace eigenveil
