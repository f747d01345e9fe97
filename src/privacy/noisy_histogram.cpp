// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/noisy_histogram.hpp"

#include <cmath>

namespace eigenveil {
PrivateSum NoisyHistogram::empty(std::size_t points, Adjacency adjacency) {
  // ||c - c'||_2 <= sqrt(2) for a replaced row, 1 for one more or less; rounded up
  const double moved = adjacency == Adjacency::kReplaceOne ? std::sqrt(2.0) * (1 + 0x1p-50) : 1;
  return {PrivateSum::Layout::kPlain, points, 1, Sensitivity(moved), 1, {}};
}

PrivateSum NoisyHistogram::cells(const PrivateCounts& above, Adjacency adjacency) {
  PrivateSum sum = empty(above.values.size(), adjacency);
  sum.values.assign(above.values.begin(), above.values.end());
  sum.fraction = above.fraction;
  for (std::size_t j = 0; j + 1 < sum.values.size(); ++j) sum.values[j] -= sum.values[j + 1];
  return sum;
}

Released<std::size_t> NoisyHistogram::first_at_most(const Released<Matrix>& cells, std::int64_t target) {
  const Matrix& rows = cells.value();
  Eigen::Index first = rows.rows() - 1;
  double above = rows(first, 0);
  while (first > 0 && above + rows(first - 1, 0) <= static_cast<double>(target)) above += rows(--first, 0);
  return Released<std::size_t>(first);
}

}  // namespace eigenveil
