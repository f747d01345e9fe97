// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/given_rows.hpp"
#include "eigenveil/front/expression_source.hpp"

namespace eigenveil {

/// Where the rows of a call come from: one of three places, each of which becomes Rows by itself.
class Rows {
 public:
  /// A file or a folder, as `open_source` takes them.
  Rows(const char* path) : path_(path) {}                            // NOLINT(google-explicit-constructor)
  Rows(std::string path) : path_(std::move(path)) {}                 // NOLINT(google-explicit-constructor)
  Rows(const std::filesystem::path& path) : path_(path.string()) {}  // NOLINT(google-explicit-constructor)

  /// A source that the caller opened, a pipe for instance. It is read once. `files`: that it reads the rows from, for
  /// the ledger, which charges the data set that they belong to; RowFiles::unknown() has the data set be named.
  template <std::derived_from<RowSource> Source>
  Rows(std::unique_ptr<Source> source, RowFiles files = {})  // NOLINT(google-explicit-constructor)
      : given_(std::make_shared<GivenRows>(std::move(source), kRowsInMemory, std::move(files))) {}

  /// Any expression of Eigen's, one row per row. Nothing is copied; what it refers to must live as long as the call.
  template <class Derived>
  Rows(const Eigen::DenseBase<Derived>& X, std::vector<std::string> names = {})  // NOLINT(google-explicit-constructor)
      : given_(
            std::make_shared<GivenRows>(std::make_unique<ExpressionSource<Derived>>(X.derived(), std::move(names)))) {}

  const std::string& path() const { return path_; }  ///< empty: they are given
  const std::shared_ptr<GivenRows>& given() const { return given_; }

 private:
  std::string path_;
  std::shared_ptr<GivenRows> given_;
};

}  // namespace eigenveil
