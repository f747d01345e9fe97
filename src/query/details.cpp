// SPDX-License-Identifier: Apache-2.0
#include "details.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eigenveil {

Status check_directions(const Directions& X, std::size_t columns) {
  if (X.rows() == columns) return {};
  return internal_error(fmt::format("directions have {} rows but the data has {} columns", X.rows(), columns));
}

Status check_grid(const std::vector<double>& grid) {
  const bool good = !grid.empty() && std::all_of(grid.begin(), grid.end(), [](double g) { return g >= 0; }) &&
                    std::is_sorted(grid.begin(), grid.end());
  return good ? Status() : internal_error("a grid must be ascending, not negative and not empty");
}

PrivateCounts counts_above(const std::vector<std::int64_t>& cells, const Lattice& lattice) {
  PrivateCounts counts{std::vector<std::int64_t>(cells.size() - 1), lattice.weight_bits > 0 ? kCountBits : 0};
  std::int64_t above = 0;
  for (std::size_t j = counts.values.size(); j-- > 0;) {
    above += cells[j + 1];
    counts.values[j] = above;
  }
  return counts;
}

}  // namespace eigenveil
