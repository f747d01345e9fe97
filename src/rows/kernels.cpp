// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "eigenveil/base/parallel.hpp"

namespace eigenveil {
namespace {

constexpr double kExact = 0x1p53;  // integers up to here are exact in a double, and so are sums that stay below

// How many rows may be summed in doubles when one row adds at most `largest` to any partial sum.
std::size_t exact_rows(double largest) {
  return static_cast<std::size_t>(std::max(1.0, std::floor(kExact / std::max(1.0, largest))));
}

// What a row weighs, and up to which row the others do.
std::pair<std::uint64_t, std::size_t> weight_at(const BoundedRows& rows, std::size_t row) {
  const std::vector<WeightRun>& runs = rows.runs();
  if (runs.empty()) return {1, SIZE_MAX};
  const auto next = std::upper_bound(runs.begin(), runs.end(), row,
                                     [](std::size_t r, const WeightRun& run) { return r < run.first; });
  return {std::prev(next)->weight, next == runs.end() ? SIZE_MAX : next->first};
}

// Runs `work(block)` for pieces of at most `most_rows` rows, in parallel over chunks. Each thread makes its own worker.
// A worker is called with blocks and `finish()`ed at the end.
template <class MakeWorker>
Status for_each_block(const BoundedRows& rows, std::size_t most_rows, bool convert, const MakeWorker& make_worker) {
  const ChunkStore& store = rows.store();
  const std::size_t d = rows.columns();
  Status failure;
  std::mutex failing;
  Tickets chunks(store.chunks());
  // More threads than chunks would only wait for each other.
  const auto threads = static_cast<int>(std::clamp<std::size_t>(store.chunks(), 1, rows.threads()));
  on_threads(threads, [&] {
    auto worker = make_worker();
    std::vector<std::int32_t> buffer;
    std::vector<double> values;
    while (const auto chunk = chunks.next()) {
      const auto lattice = store.read(*chunk, buffer);
      if (!lattice) {
        const std::lock_guard lock(failing);
        failure = lattice.error();
        return;
      }
      const std::size_t count = store.rows_in(*chunk);
      if (convert) values.assign(*lattice, *lattice + count * d);
      for (std::size_t i = 0; i < count;) {
        const std::size_t first = *chunk * store.chunk_rows() + i;
        const auto [weight, end] = weight_at(rows, first);
        const std::size_t piece = std::min({most_rows, count - i, end - first});
        worker(RowBlock{first, piece, d, *lattice + i * d, convert ? &values[i * d] : nullptr, weight});
        i += piece;
      }
    }
    worker.finish();
  });
  return failure;
}

int blas_int(std::size_t value) { return static_cast<int>(value); }

// The 128-bit total that threads add to.
struct Total {
  explicit Total(std::size_t size) : values(size) {}
  std::vector<Int128> values;
  std::mutex adding;
};

// Sums blocks in doubles and moves the sums into the shared 128-bit total before they can become inexact.
struct ExactAccumulator {
  Total& total;
  std::size_t most_rows;
  std::vector<double> partial;
  std::size_t pending = 0;
  std::uint64_t weight = 1;  // of all rows that are pending

  ExactAccumulator(Total& sum, std::size_t size, std::size_t most) : total(sum), most_rows(most), partial(size) {}

  // `flush` adds weight partial[index(i)] to total[i].
  template <class Flush>
  void make_room(const RowBlock& block, const Flush& flush) {
    if (pending > 0 && (pending + block.rows > most_rows || weight != block.weight)) {
      flush();
      std::fill(partial.begin(), partial.end(), 0.0);
      pending = 0;
    }
    pending += block.rows;
    weight = block.weight;
  }

  // At most 2^53 2^32: no overflow, and exact.
  Int128 weighed(std::size_t i) const { return Int128{static_cast<std::int64_t>(partial[i])} * weight; }
};

struct GramWorker {
  ExactAccumulator sum;

  void operator()(const RowBlock& block) {
    sum.make_room(block, [&] { flush(block.columns); });
    // C <- C + U^T U, lower triangle. Row-major U is column-major U^T.
    d = block.columns;
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, blas_int(d), blas_int(block.rows), 1.0, block.values,
                blas_int(d), 1.0, sum.partial.data(), blas_int(d));
  }
  void flush(std::size_t n) const {
    const std::lock_guard lock(sum.total.adding);
    Int128* to = sum.total.values.data();
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t row = column; row < n; ++row) *to++ += sum.weighed(column * n + row);
  }
  void finish() const {
    if (sum.pending > 0) flush(d);
  }
  std::size_t d = 0;
};

struct OuterWorker {
  ExactAccumulator sum;
  std::size_t k;
  const FillWeights& fill;
  std::vector<double> t;

  void operator()(const RowBlock& block) {
    sum.make_room(block, [&] { flush(); });
    t.resize(block.rows * k);
    fill(block, t.data());
    // C <- C + U^T T
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, blas_int(block.columns), blas_int(k), blas_int(block.rows),
                1.0, block.values, blas_int(block.columns), t.data(), blas_int(k), 1.0, sum.partial.data(),
                blas_int(block.columns));
  }
  void flush() const {
    const std::lock_guard lock(sum.total.adding);
    for (std::size_t i = 0; i < sum.partial.size(); ++i) sum.total.values[i] += sum.weighed(i);
  }
  void finish() const {
    if (sum.pending > 0) flush();
  }
};

// Sums a cell at a time: the block's rows are gathered by cell, then C_cell <- C_cell + U_cell^T T_cell.
struct CellWorker {
  Total& total;
  std::vector<std::int64_t>& counts;  // shared, guarded by total.adding
  std::size_t d;
  std::size_t k;
  std::size_t cells;
  std::size_t most_rows;
  const FillCells& fill;
  std::vector<double> partial = std::vector<double>(cells * d * k);
  std::vector<std::size_t> pending = std::vector<std::size_t>(cells);
  std::vector<std::int64_t> own_counts = std::vector<std::int64_t>(cells);
  bool weighted = false;
  std::uint64_t weight = 1;  // of all rows that are pending
  std::vector<double> t, u, t_sorted;
  std::vector<std::uint32_t> cell;
  std::vector<std::size_t> order;

  void operator()(const RowBlock& block) {
    if (block.weight != weight) {
      for (std::size_t c = 0; c < cells; ++c) flush(c);
      weight = block.weight;
    }
    t.resize(block.rows * k);
    cell.resize(block.rows);
    fill(block, t.data(), cell.data());
    order.resize(block.rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cell[a] < cell[b]; });
    u.resize(block.rows * d);
    t_sorted.resize(block.rows * k);
    for (std::size_t i = 0; i < block.rows; ++i) {
      std::copy_n(block.values + order[i] * d, d, &u[i * d]);
      std::copy_n(&t[order[i] * k], k, &t_sorted[i * k]);
    }
    for (std::size_t i = 0; i < block.rows;) {
      const std::size_t c = cell[order[i]];
      std::size_t end = i + 1;
      while (end < block.rows && cell[order[end]] == c) ++end;
      add(c, end - i, &u[i * d], &t_sorted[i * k]);
      i = end;
    }
  }
  void add(std::size_t c, std::size_t rows, const double* U, const double* T) {
    if (pending[c] + rows > most_rows) flush(c);
    pending[c] += rows;
    own_counts[c] += static_cast<std::int64_t>(rows * (weighted ? count_weight(weight) : 1));
    double* C = &partial[c * d * k];
    if (k == 1)
      cblas_dgemv(CblasColMajor, CblasNoTrans, blas_int(d), blas_int(rows), 1.0, U, blas_int(d), T, 1, 1.0, C, 1);
    else
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, blas_int(d), blas_int(k), blas_int(rows), 1.0, U,
                  blas_int(d), T, blas_int(k), 1.0, C, blas_int(d));
  }
  void flush(std::size_t c) {
    if (pending[c] == 0) return;
    const std::lock_guard lock(total.adding);
    for (std::size_t i = c * d * k; i < (c + 1) * d * k; ++i)
      total.values[i] += Int128{static_cast<std::int64_t>(std::exchange(partial[i], 0.0))} * weight;
    pending[c] = 0;
  }
  void finish() {
    for (std::size_t c = 0; c < cells; ++c) flush(c);
    const std::lock_guard lock(total.adding);
    for (std::size_t c = 0; c < cells; ++c) counts[c] += own_counts[c];
  }
};

struct CountWorker {
  Total& total;
  const AddCounts& add;
  bool count_weights;
  std::vector<std::int64_t> counts;

  void operator()(const RowBlock& block) {
    add(block, counts);
    flush(count_weights ? count_weight(block.weight) : block.weight);
  }
  void flush(std::uint64_t weight) {
    const std::lock_guard lock(total.adding);
    for (std::size_t i = 0; i < counts.size(); ++i) total.values[i] += Int128{counts[i]} * weight;
    std::fill(counts.begin(), counts.end(), 0);
  }
  void finish() const {}
};

double largest_entry(const BoundedRows& rows) { return static_cast<double>(rows.lattice().norm_bound()); }

}  // namespace

Result<std::vector<Int128>> gram_sum(const BoundedRows& rows) {
  const std::size_t d = rows.columns();
  Total total(d * (d + 1) / 2);
  const std::size_t most = exact_rows(largest_entry(rows) * largest_entry(rows));
  EIGENVEIL_TRY(for_each_block(rows, most, true, [&] { return GramWorker{ExactAccumulator(total, d * d, most)}; }));
  return std::move(total.values);
}

Result<std::vector<Int128>> outer_sum(const BoundedRows& rows, std::size_t k, double largest_weight,
                                      const FillWeights& fill) {
  Total total(rows.columns() * k);
  const std::size_t most = exact_rows(largest_entry(rows) * largest_weight);
  EIGENVEIL_TRY(for_each_block(rows, most, true, [&] {
    return OuterWorker{ExactAccumulator(total, total.values.size(), most), k, fill, {}};
  }));
  return std::move(total.values);
}

Result<CellSums> cell_sum(const BoundedRows& rows, std::size_t k, std::size_t cells, double largest_weight,
                          const FillCells& fill) {
  Total total(cells * rows.columns() * k);
  std::vector<std::int64_t> counts(cells);
  const std::size_t most = exact_rows(largest_entry(rows) * largest_weight);
  EIGENVEIL_TRY(for_each_block(rows, most, true, [&] {
    CellWorker worker{total, counts, rows.columns(), k, cells, most, fill};
    worker.weighted = rows.weighted();
    return worker;
  }));
  return CellSums{std::move(counts), std::move(total.values)};
}

Result<std::vector<Int128>> count_sum(const BoundedRows& rows, std::size_t size, BlockValues values,
                                      const AddCounts& add, CountUnit unit) {
  const bool count_weights = rows.weighted() && unit == CountUnit::kCountWeight;
  Total total(size);
  EIGENVEIL_TRY(for_each_block(rows, rows.store().chunk_rows(), values == BlockValues::kFill, [&] {
    return CountWorker{total, add, count_weights, std::vector<std::int64_t>(size)};
  }));
  return std::move(total.values);
}

}  // namespace eigenveil
