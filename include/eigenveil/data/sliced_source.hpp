// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// Passes rows on with the number in their last column replaced by that of its slice: below cuts[0] is slice 0, from
/// cuts[i - 1] up to but not including cuts[i] is slice i. Equal numbers fall into one slice; a missing one stays so.
class SlicedSource final : public RowSource {
 public:
  /// `cuts` ascend strictly.
  SlicedSource(std::unique_ptr<RowSource> source, std::vector<double> cuts);

  const std::vector<std::string>& columns() const override { return source_->columns(); }
  Status next(RawBatch& batch, std::size_t max_rows) override;
  Status skip(std::size_t rows) override { return source_->skip(rows); }
  std::string part() const override { return source_->part(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }

 private:
  std::unique_ptr<RowSource> source_;
  std::vector<double> cuts_;
};

}  // namespace eigenveil
