// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/table.hpp"

#include <fmt/format.h>

#include "unread_rows.hpp"

namespace eigenveil {

Table::Table(std::string name, data::FileColumns columns, std::unique_ptr<data::UnreadRows> rows)
    : name_(std::move(name)), columns_(std::move(columns)), rows_(std::move(rows)) {}
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

Result<std::vector<std::string>> Table::column_names(const std::vector<std::string>& columns) const {
  return EIGENVEIL_TRY(data::select_columns(name_, columns_, {.columns = columns})).names;
}

Result<std::unique_ptr<RowSource>> Table::take(const SourceOptions& options) {
  if (!rows_) return internal_error(fmt::format("{}: its rows were taken already", name_));
  auto selection = EIGENVEIL_TRY(data::select_columns(name_, columns_, options));
  return std::exchange(rows_, nullptr)->read(std::move(selection), options);
}

Result<std::unique_ptr<RowSource>> open_source(const std::string& path, const SourceOptions& options) {
  return EIGENVEIL_TRY(Table::open(path, options)).take(options);
}

}  // namespace eigenveil
