// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/data/passing_source.hpp"
#include "selection.hpp"

namespace eigenveil::data {

/// Integers below this are exact in a number of 64 bits, of 32 and of 16.
constexpr double kExactDouble = 0x1p53, kExactFloat = 0x1p24, kExactHalf = 0x1p11;

/// Whose row it is, as a number says: whole numbers by their digits. Of a source whose numbers hold integers below
/// `below` exactly, others are an error, or (BadRows::kMissing) ids like any: all rows of one number are one person's.
/// NaN alone is no id.
Result<PersonId> person_of_number(double number, double below, const PersonColumn::Key& key, BadRows bad_rows);

/// Rows of numbers whose last column says whose they are: that column goes where people belong.
class NumberedPeople final : public PassingSource {
 public:
  NumberedPeople(std::unique_ptr<RowSource> source, PersonColumn person, std::string name, BadRows bad_rows,
                 double below)
      : PassingSource(std::move(source)),
        person_(std::move(person)),
        name_(std::move(name)),
        bad_rows_(bad_rows),
        below_(below),
        names_(this->source().columns()) {
    names_.pop_back();
  }

  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t max_rows) override;

 private:
  PersonColumn person_;
  std::string name_;
  BadRows bad_rows_;
  double below_;
  std::vector<std::string> names_;
};

/// The selection of a source that knows numbers only: the person's column behind the others, if there is one.
Selection with_person_last(Selection selection);
/// And the source that takes it away again. `below`: integers below it are exact in the source.
std::unique_ptr<RowSource> taking_person(std::unique_ptr<RowSource> source, const std::optional<PersonColumn>& person,
                                         std::string name, BadRows bad_rows, double below);

}  // namespace eigenveil::data
