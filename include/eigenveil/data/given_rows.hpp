// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// What messages and ledgers call rows that no file holds.
inline constexpr const char* kRowsInMemory = "rows in memory";

/// Rows that the caller opened: a matrix in memory, a pipe, a socket. They are read once.
class GivenRows {
 public:
  /// `name` stands for a path in messages. `files`: that the caller reads the rows from. Their budgets pay.
  explicit GivenRows(std::unique_ptr<RowSource> source, std::string name = kRowsInMemory,
                     std::vector<std::string> files = {});

  const std::string& name() const { return name_; }
  const std::vector<std::string>& files() const { return files_; }
  /// The columns that a list of names, positions and ranges means, as of a file; empty: all.
  Result<std::vector<std::string>> column_names(const std::vector<std::string>& columns) const;
  /// The rows, of each the columns that the options choose, categories as their index. What options say of files is
  /// refused; so is a second call, for which nothing would be left.
  Result<std::unique_ptr<RowSource>> take(const SourceOptions& options);

 private:
  std::unique_ptr<RowSource> source_;
  std::string name_;
  std::vector<std::string> files_;
  std::vector<std::string> columns_;
};

/// The files that rows lie in: those of rows that were given, or else the one that is named.
std::vector<std::string> files_of(const std::shared_ptr<GivenRows>& given, const std::string& path);

}  // namespace eigenveil
