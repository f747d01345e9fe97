// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/data/passing_source.hpp"
#include "selection.hpp"

namespace eigenveil::data {

/// Rows of numbers whose last column says whose they are: that column goes where people belong.
class NumberedPeople final : public PassingSource {
 public:
  NumberedPeople(std::unique_ptr<RowSource> source, PersonColumn person, std::string name, BadRows bad_rows)
      : PassingSource(std::move(source)),
        person_(std::move(person)),
        name_(std::move(name)),
        bad_rows_(bad_rows),
        names_(this->source().columns()) {
    names_.pop_back();
  }

  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t max_rows) override;

 private:
  PersonColumn person_;
  std::string name_;
  BadRows bad_rows_;
  std::vector<std::string> names_;
};

/// The selection of a source that knows numbers only: the person's column behind the others, if there is one.
Selection with_person_last(Selection selection);
/// And the source that takes it away again.
std::unique_ptr<RowSource> taking_person(std::unique_ptr<RowSource> source, const std::optional<PersonColumn>& person,
                                         std::string name, BadRows bad_rows);

}  // namespace eigenveil::data
