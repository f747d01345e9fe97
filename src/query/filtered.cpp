// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/filtered.hpp"

#include <algorithm>
#include <cmath>

#include "details.hpp"

namespace eigenveil {
namespace {

// Upper edges of the cells in units of (lattice step)^2, as integers: the grid, and then what no row exceeds.
std::vector<std::int64_t> edges(const FilteredApply& query, const Lattice& lattice) {
  const double square = lattice.unit() * lattice.unit();
  const auto L = static_cast<double>(lattice.norm_bound());
  const double most = std::ceil(L * L * query.X.norm_factor());
  std::vector<std::int64_t> result;
  for (const double g : query.grid)
    result.push_back(static_cast<std::int64_t>(std::clamp(std::floor(g / square), 0.0, most)));
  result.push_back(static_cast<std::int64_t>(most));
  return result;
}

// ||u||^2 ||t||^2 <= theta^2, in 128-bit integers
bool within(std::int64_t u2, std::int64_t t2, std::int64_t theta) {
  return UInt128{static_cast<std::uint64_t>(u2)} * static_cast<std::uint64_t>(t2) <=
         UInt128{static_cast<std::uint64_t>(theta)} * static_cast<std::uint64_t>(theta);
}

// w_c / 2^20 is what a row of cell c counts for: w_c edge_c <= 2^20 theta
std::int64_t weight(std::int64_t theta, std::int64_t edge, FilterMode mode) {
  if (edge <= theta) return kFilteredParts;
  return mode == FilterMode::kDrop ? 0 : theta * kFilteredParts / edge;
}

// How far one row can move the sum, in its units, rounded up.
Sensitivity filtered_sensitivity(const FilteredApply& query, std::size_t chosen, const Lattice& lattice,
                                 Adjacency adjacency) {
  const auto L = static_cast<double>(lattice.norm_bound());
  const auto k = static_cast<double>(query.X.columns());
  const auto theta = static_cast<double>(edges(query, lattice)[chosen]);
  if (adjacency == Adjacency::kAddRemoveOne) return Sensitivity(theta * kFilteredParts);
  const double wide = std::min(std::sqrt(2.0), std::sqrt(k)) * L * L * query.X.norm_factor() + 2 * L * std::sqrt(k);
  return Sensitivity(round_up(std::min(2 * theta, wide)) * kFilteredParts);
}

}  // namespace

Status validate(const FilteredApply& query, const RowsFacts& rows) {
  EIGENVEIL_TRY(check_directions(query.X, rows.columns));
  EIGENVEIL_TRY(check_grid(query.grid));
  if (edges(query, rows.lattice).front() < 1) return internal_error("the first threshold is below one lattice step");
  return {};
}

Result<FilteredCells> FilteredCells::sweep(const FilteredApply& query, const BoundedRows& rows) {
  const std::vector<std::int64_t> edge = edges(query, rows.lattice());
  const std::size_t k = query.X.columns();
  const double largest = static_cast<double>(rows.lattice().norm_bound()) * query.X.norm_factor();
  auto cells =
      EIGENVEIL_TRY(cell_sum(rows, k, edge.size(), largest, [&](const RowBlock& block, double* t, std::uint32_t* cell) {
        query.X.project(block, t);
        for (std::size_t i = 0; i < block.rows; ++i) {
          const std::int64_t u2 = squared_norm(block.lattice + i * block.columns, block.columns);
          std::int64_t t2 = 0;
          for (std::size_t j = 0; j < k; ++j) {
            const auto x = static_cast<std::int64_t>(t[i * k + j]);
            t2 += x * x;
          }
          const auto found =
              std::partition_point(edge.begin(), edge.end() - 1, [&](std::int64_t e) { return !within(u2, t2, e); });
          cell[i] = static_cast<std::uint32_t>(found - edge.begin());
        }
      }));
  return FilteredCells(query, rows.lattice(), counts_above(cells.counts, rows.lattice()), std::move(cells.sums));
}

PrivateSum FilteredCells::sum(std::size_t chosen, Adjacency adjacency) const {
  const std::vector<std::int64_t> edge = edges(query_, lattice_);
  PrivateSum sum = empty_sum(query_, chosen, lattice_, adjacency);
  const std::size_t size = sum.entries();
  sum.values.resize(size);
  for (std::size_t c = 0; c < edge.size(); ++c) {
    const std::int64_t w = weight(edge[chosen], edge[c], query_.mode);
    if (w == 0) continue;
    for (std::size_t i = 0; i < size; ++i) sum.values[i] += w * sums_[c * size + i];
  }
  return sum;
}

PrivateSum empty_sum(const FilteredApply& query, std::size_t chosen, const Lattice& lattice, Adjacency adjacency) {
  const double unit = lattice.unit() * lattice.unit() / kFilteredParts;
  return {PrivateSum::Layout::kPlain,
          query.X.rows(),
          query.X.columns(),
          filtered_sensitivity(query, chosen, lattice, adjacency),
          unit,
          {},
          lattice.weight_bits};
}

std::size_t sweep_bytes(std::size_t columns, std::size_t k, std::size_t grid, int threads) {
  return (grid + 1) * columns * k * (sizeof(Int128) + sizeof(double) * threads);
}

}  // namespace eigenveil
