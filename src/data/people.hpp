// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "selection.hpp"

namespace eigenveil::data {

/// Rows of numbers whose last column says whose they are: that column goes where people belong.
class NumberedPeople final : public RowSource {
 public:
  NumberedPeople(std::unique_ptr<RowSource> source, PersonColumn person, std::string name)
      : source_(std::move(source)), person_(std::move(person)), name_(std::move(name)), names_(source_->columns()) {
    names_.pop_back();
  }

  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t max_rows) override;
  Status skip(std::size_t rows) override { return source_->skip(rows); }
  std::string part() const override { return source_->part(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }

 private:
  std::unique_ptr<RowSource> source_;
  PersonColumn person_;
  std::string name_;
  std::vector<std::string> names_;
};

/// The selection of a source that knows numbers only: the person's column behind the others, if there is one.
Selection with_person_last(Selection selection);
/// And the source that takes it away again.
std::unique_ptr<RowSource> taking_person(std::unique_ptr<RowSource> source, const SourceOptions& options,
                                         std::string name);

}  // namespace eigenveil::data
