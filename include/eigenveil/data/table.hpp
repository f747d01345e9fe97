// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

namespace data {

/// The columns of a file before any choice. No names: they are numbered "1", "2", ...
struct FileColumns {
  std::size_t count = 0;
  std::vector<std::string> names;

  std::string name(std::size_t position) const {
    return names.empty() || names[position].empty() ? std::to_string(position + 1) : names[position];
  }
};

class UnreadRows;

}  // namespace data

/// A file or folder that is open: its columns are known, and no row has been read. So columns can be chosen by what is
/// known of them without opening anything twice, which a pipe would not survive.
class Table {
 public:
  /// What the options choose (columns, categories) does not matter yet.
  static Result<Table> open(const std::string& path, const SourceOptions& options);

  Table(std::string name, data::FileColumns columns, std::unique_ptr<data::UnreadRows> rows);
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  /// What messages call it.
  const std::string& name() const { return name_; }
  const data::FileColumns& columns() const { return columns_; }
  /// The columns that a list of names, positions and ranges means; empty: all.
  Result<std::vector<std::string>> column_names(const std::vector<std::string>& columns) const;
  /// The rows, of each the columns that the options choose, categories as their index. Called once.
  Result<std::unique_ptr<RowSource>> take(const SourceOptions& options);

 private:
  std::string name_;
  data::FileColumns columns_;
  std::unique_ptr<data::UnreadRows> rows_;
};

}  // namespace eigenveil
