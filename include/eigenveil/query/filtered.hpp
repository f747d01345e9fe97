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

/// Rows by grid cell, before anything is chosen or noised.
struct FilteredCells {
  PrivateCounts above;  ///< how many rows exceed each grid point
  std::vector<Int128> sums;
};

Status validate(const FilteredApply& query, const BoundedRows& rows);

/// The one sweep.
Result<FilteredCells> exact_cells(const FilteredApply& query, const BoundedRows& rows);

/// In a filtered sum rows count in 2^-20ths, so that nothing is rounded.
constexpr std::int64_t kFilteredParts = std::int64_t{1} << 20;

/// What an integer of a filtered sum stands for.
double filtered_unit(const Lattice& lattice);

/// The sum for theta = grid[chosen], in units of that.
PrivateSum filtered_sum(const FilteredCells& cells, const FilteredApply& query, const Lattice& lattice,
                        std::size_t chosen);

/// How far one row can move that sum, in its units, rounded up.
Sensitivity sensitivity(const FilteredApply& query, std::size_t chosen, const Lattice& lattice, Adjacency adjacency);

/// How many bytes a sweep needs besides the rows.
std::size_t sweep_bytes(std::size_t columns, std::size_t k, std::size_t grid, int threads);

}  // namespace eigenveil
