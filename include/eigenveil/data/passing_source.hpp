// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// A source of another one's rows: it says what that one says, but for what it overrides.
class PassingSource : public RowSource {
 public:
  explicit PassingSource(std::unique_ptr<RowSource> source) : source_(std::move(source)) {}

  const std::vector<std::string>& columns() const override { return source_->columns(); }
  Status skip(std::size_t rows) override { return source_->skip(rows); }
  std::string part() const override { return source_->part(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }
  double exact_below() const override { return source_->exact_below(); }

 protected:
  RowSource& source() const { return *source_; }

 private:
  std::unique_ptr<RowSource> source_;
};

}  // namespace eigenveil
