// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/memory_source.hpp"

#include <algorithm>

namespace eigenveil {

MemorySource::MemorySource(RowMajorMatrix rows, std::vector<std::string> names)
    : rows_(std::move(rows)), names_(std::move(names)) {
  for (Eigen::Index j = names_.size(); j < rows_.cols(); ++j) names_.push_back(std::to_string(j + 1));
}

Status MemorySource::next(RawBatch& batch, std::size_t max_rows) {
  batch.first_row = position_;
  batch.rows = std::min(max_rows, rows_.rows() - position_);
  const double* begin = rows_.data() + position_ * names_.size();
  batch.values.assign(begin, begin + batch.rows * names_.size());
  position_ += batch.rows;
  return {};
}

double MemorySource::progress() const {
  return rows_.rows() == 0 ? 1.0 : static_cast<double>(position_) / static_cast<double>(rows_.rows());
}

}  // namespace eigenveil
