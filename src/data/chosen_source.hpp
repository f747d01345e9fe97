// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "selection.hpp"

namespace eigenveil::data {

/// Some columns of another source, in another order, with categories as their index in the public list.
class ChosenSource final : public RowSource {
 public:
  /// `width`: how many columns the selection was made of. What the source says of them later is another matter.
  ChosenSource(std::unique_ptr<RowSource> source, std::size_t width, Selection selection, BadRows bad_rows,
               std::string name)
      : source_(std::move(source)),
        width_(width),
        selection_(std::move(selection)),
        bad_rows_(bad_rows),
        name_(std::move(name)) {}

  const std::vector<std::string>& columns() const override { return selection_.names; }
  Status next(RawBatch& batch, std::size_t max_rows) override;
  Status skip(std::size_t rows) override { return source_->skip(rows); }
  std::string part() const override { return source_->part(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }

 private:
  std::unique_ptr<RowSource> source_;
  std::size_t width_;
  Selection selection_;
  BadRows bad_rows_;
  std::string name_;
  RawBatch whole_;
};

}  // namespace eigenveil::data
