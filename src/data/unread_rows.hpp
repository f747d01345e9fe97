// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "eigenveil/data/table.hpp"
#include "selection.hpp"

namespace eigenveil::data {

/// What an opened file waits with until its columns are chosen.
class UnreadRows {
 public:
  virtual ~UnreadRows() = default;
  /// `selection`: what the options choose.
  virtual Result<std::unique_ptr<RowSource>> read(Selection selection, const SourceOptions& options) = 0;
};

/// A table whose rows are made by `make(selection, options)`, a function that owns what is open.
template <class Make>
Table table_of(std::string name, FileColumns columns, Make make) {
  class Rows final : public UnreadRows {
   public:
    explicit Rows(Make make) : make_(std::move(make)) {}
    Result<std::unique_ptr<RowSource>> read(Selection selection, const SourceOptions& options) override {
      return make_(std::move(selection), options);
    }

   private:
    Make make_;
  };
  return {std::move(name), std::move(columns), std::make_unique<Rows>(std::move(make))};
}

}  // namespace eigenveil::data
