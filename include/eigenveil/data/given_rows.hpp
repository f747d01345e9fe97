// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// What messages and ledgers call rows that no file holds.
inline constexpr const char* kRowsInMemory = "rows in memory";

/// The files that rows are read from, whose budgets pay. No files and files that nobody can tell are two things.
struct RowFiles {
  RowFiles() = default;
  RowFiles(std::vector<std::string> paths) : paths(std::move(paths)) {}  // NOLINT(google-explicit-constructor)
  RowFiles(std::initializer_list<std::string> paths) : paths(paths) {}
  /// Of rows that are read from somewhere, and who reads them cannot tell where.
  static RowFiles unknown();
  void add(const RowFiles& more);

  std::vector<std::string> paths;
  bool told = true;  ///< false: there may be others
};

/// Rows that the caller opened: a matrix in memory, a pipe, a socket. They are read once.
class GivenRows {
 public:
  /// `name` stands for a path in messages. `files`: that the caller reads the rows from.
  explicit GivenRows(std::unique_ptr<RowSource> source, std::string name = kRowsInMemory, RowFiles files = {});

  const std::string& name() const { return name_; }
  const RowFiles& files() const { return files_; }
  /// The columns that a list of names, positions and ranges means, as of a file; empty: all.
  Result<std::vector<std::string>> column_names(const std::vector<std::string>& columns) const;
  /// The rows, of each the columns that the options choose, categories as their index. What options say of files is
  /// refused; so is a second call, for which nothing would be left.
  Result<std::unique_ptr<RowSource>> take(const SourceOptions& options);

 private:
  std::unique_ptr<RowSource> source_;
  std::string name_;
  RowFiles files_;
  std::vector<std::string> columns_;
};

/// The files that rows lie in: those of rows that were given, or else the one that is named.
RowFiles files_of(const std::shared_ptr<GivenRows>& given, const std::string& path);

}  // namespace eigenveil
