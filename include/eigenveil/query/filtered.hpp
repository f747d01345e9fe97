// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/query.hpp"

namespace eigenveil {

enum class FilterMode { kShrink, kDrop };

/// sum u (X^T u)^T over rows whose statistic ||u|| ||X^T u|| is at most a threshold theta of the ascending grid, found
/// privately; rows above it are shrunk to it (by the upper edge of their grid cell) or dropped. The threshold and the
/// sum come from one sweep over the rows: filtered.proof.md.
struct FilteredApply {
  Directions X;
  std::vector<double> grid;
  FilterMode mode = FilterMode::kShrink;
};

/// Rows by grid cell, before anything is chosen or noised: private. It keeps the query and the lattice that it came
/// from, and its sums are of those, whatever happens to the rows afterwards.
class FilteredCells {
 public:
  /// The one sweep.
  static Result<FilteredCells> sweep(const FilteredApply& query, const BoundedRows& rows);

  /// How many rows exceed each grid point.
  const PrivateCounts& above() const { return above_; }
  /// The sum for theta = grid[chosen], with its sensitivity.
  PrivateSum sum(std::size_t chosen, Adjacency adjacency) const;

  /// The integers of another holder's cells, or of all holders together, in their place.
  std::vector<std::int64_t>& counts() { return above_.values; }
  std::vector<Int128>& sums() { return sums_; }

 private:
  FilteredCells(FilteredApply query, Lattice lattice, PrivateCounts above, std::vector<Int128> sums)
      : query_(std::move(query)), lattice_(lattice), above_(std::move(above)), sums_(std::move(sums)) {}
  FilteredApply query_;
  Lattice lattice_;
  PrivateCounts above_;
  std::vector<Int128> sums_;
};

Status validate(const FilteredApply& query, const RowsFacts& rows);

/// In a filtered sum rows count in 2^-20ths, so that nothing is rounded.
constexpr std::int64_t kFilteredParts = std::int64_t{1} << 20;

/// The layout of the sum for theta = grid[chosen], its sensitivity and unit; without values.
PrivateSum empty_sum(const FilteredApply& query, std::size_t chosen, const Lattice& lattice, Adjacency adjacency);

/// How many bytes a sweep needs besides the rows.
std::size_t sweep_bytes(std::size_t columns, std::size_t k, std::size_t grid, int threads);

}  // namespace eigenveil
