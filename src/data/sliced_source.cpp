// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/sliced_source.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil {

SlicedSource::SlicedSource(std::unique_ptr<RowSource> source, std::vector<double> cuts)
    : PassingSource(std::move(source)), cuts_(std::move(cuts)) {}

Status SlicedSource::next(RawBatch& batch, std::size_t max_rows) {
  EIGENVEIL_TRY(source().next(batch, max_rows));
  const std::size_t width = columns().size();
  for (std::size_t i = 0; i < batch.rows; ++i) {
    double& value = batch.values[(i + 1) * width - 1];
    if (!std::isnan(value))
      value = static_cast<double>(std::upper_bound(cuts_.begin(), cuts_.end(), value) - cuts_.begin());
  }
  return {};
}

}  // namespace eigenveil
