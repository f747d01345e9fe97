// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/data/passing_source.hpp"
#include "selection.hpp"

namespace eigenveil::data {

/// Some columns of another source, in another order, with categories as their index in the public list.
class ChosenSource final : public PassingSource {
 public:
  /// `width`: how many columns the selection was made of. What the source says of them later is another matter.
  ChosenSource(std::unique_ptr<RowSource> source, std::size_t width, Selection selection, BadRows bad_rows,
               std::string name)
      : PassingSource(std::move(source)),
        width_(width),
        selection_(std::move(selection)),
        bad_rows_(bad_rows),
        name_(std::move(name)) {}

  const std::vector<std::string>& columns() const override { return selection_.names; }
  Status next(RawBatch& batch, std::size_t max_rows) override;

 private:
  std::size_t width_;
  Selection selection_;
  BadRows bad_rows_;
  std::string name_;
  RawBatch whole_;
};

}  // namespace eigenveil::data
