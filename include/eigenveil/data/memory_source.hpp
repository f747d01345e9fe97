// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// Rows that are in memory already.
class MemorySource final : public RowSource {
 public:
  /// Columns are numbered "1", "2", ... unless names are given.
  explicit MemorySource(RowMajorMatrix rows, std::vector<std::string> names = {});

  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t max_rows) override;
  std::optional<std::size_t> rows_announced() const override { return rows_.rows(); }
  double progress() const override;

 private:
  RowMajorMatrix rows_;
  std::vector<std::string> names_;
  std::size_t position_ = 0;
};

}  // namespace eigenveil
