// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/rows/bounded_rows.hpp"

namespace eigenveil::test {

using LatticeRow = std::vector<std::int32_t>;

struct RowsSetup {
  int bits = 20;
  int threads = 1;
  std::size_t chunk_rows = 0;
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::vector<int> classes = {};  ///< one per row; empty: none
  std::vector<int> people = {};   ///< whose row it is, one per row; empty: nobody's
  PersonRule rule = {};
};

/// Says whose the rows of another source are. Negative: nobody knows.
class PeopledSource final : public RowSource {
 public:
  PeopledSource(std::unique_ptr<RowSource> source, std::vector<int> people)
      : source_(std::move(source)), people_(std::move(people)) {}
  const std::vector<std::string>& columns() const override { return source_->columns(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    EIGENVEIL_TRY(source_->next(batch, max_rows));
    batch.people.clear();
    for (std::size_t i = 0; i < batch.rows; ++i, ++at_)
      batch.people.push_back(people_[at_] < 0 ? PersonId{} : person_of(std::to_string(people_[at_]), {7}));
    return {};
  }

 private:
  std::unique_ptr<RowSource> source_;
  std::vector<int> people_;
  std::size_t at_ = 0;
};

/// Rows given as lattice integers: a lattice of radius 2^bits has unit 1, so they arrive as they are.
BoundedRows lattice_rows(const std::vector<LatticeRow>& rows, std::size_t columns, const RowsSetup& setup = {});

}  // namespace eigenveil::test
