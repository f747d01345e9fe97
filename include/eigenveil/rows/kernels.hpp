// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/rows/bounded_rows.hpp"

namespace eigenveil {

// Exact integer sums over bounded rows at BLAS speed: kernels.proof.md. Whatever the threads, chunks or order of rows,
// the result is the same bit for bit. Rows count with their weights, in 2^-weight_bits of the lattice.

/// A block of rows, row-major: as lattice integers and as integer-valued doubles.
struct RowBlock {
  std::size_t first;  ///< number of the block's first row
  std::size_t rows;
  std::size_t columns;
  const std::int32_t* lattice;
  const double* values;
  std::uint64_t weight;  ///< of each of its rows, in 2^-weight_bits of the lattice; 1 where rows are nobody's
};

/// sum_i u_i u_i^T: the lower triangle, packed by columns.
Result<std::vector<Int128>> gram_sum(const BoundedRows& rows);

/// Fills the rows x k row-major matrix of integer-valued doubles t of a block. Called by several threads at once.
using FillWeights = std::function<void(const RowBlock& block, double* t)>;

/// sum_i u_i t_i^T as a columns x k column-major matrix. Every |t_ij| must be at most `largest_weight`.
Result<std::vector<Int128>> outer_sum(const BoundedRows& rows, std::size_t k, double largest_weight,
                                      const FillWeights& fill);

/// Rows sorted into cells: how many rows a cell has (of people: in 2^-20, with `count_weight`), and for each cell sum
/// u_i t_i^T over its rows (columns x k, column-major, one cell after the other).
struct CellSums {
  std::vector<std::int64_t> counts;
  std::vector<Int128> sums;
};

/// As FillWeights, and tells the cell of each row.
using FillCells = std::function<void(const RowBlock& block, double* t, std::uint32_t* cell)>;

/// One sweep over the rows for all cells together. Memory: cells x columns x k, 16 bytes and 8 more per thread.
Result<CellSums> cell_sum(const BoundedRows& rows, std::size_t k, std::size_t cells, double largest_weight,
                          const FillCells& fill);

/// Adds a block's contribution to `counts` (one accumulator per thread). Called by several threads at once.
using AddCounts = std::function<void(const RowBlock& block, std::vector<std::int64_t>& counts)>;

enum class BlockValues { kOmit, kFill };

/// How rows of people count in a sum of small integers: with their weight, or with `count_weight` of it.
enum class CountUnit { kWeight, kCountWeight };

/// sum_i c_i for small integer vectors c_i of length `size`. `RowBlock::values` is there only if asked for.
Result<std::vector<Int128>> count_sum(const BoundedRows& rows, std::size_t size, BlockValues values,
                                      const AddCounts& add, CountUnit unit = CountUnit::kWeight);

}  // namespace eigenveil
