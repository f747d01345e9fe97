// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "eigenveil/data/passing_source.hpp"

namespace eigenveil {

/// Passes rows on with the number in their last column replaced by that of its slice: below cuts[0] is slice 0, from
/// cuts[i - 1] up to but not including cuts[i] is slice i. Equal numbers fall into one slice; a missing one stays so.
class SlicedSource final : public PassingSource {
 public:
  /// `cuts` ascend strictly.
  SlicedSource(std::unique_ptr<RowSource> source, std::vector<double> cuts);

  Status next(RawBatch& batch, std::size_t max_rows) override;

 private:
  std::vector<double> cuts_;
};

}  // namespace eigenveil
