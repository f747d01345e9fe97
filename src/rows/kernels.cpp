#include "eigenveil/rows/kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "eigenveil/base/parallel.hpp"

namespace eigenveil {
namespace {

constexpr double kExact = 0x1p53;  // integers up to here are exact in a double, and so are sums that stay below

// How many rows may be summed in doubles when one row adds at most `largest` to any partial sum.
std::size_t exact_rows(double largest) {
  return static_cast<std::size_t>(std::max(1.0, std::floor(kExact / std::max(1.0, largest))));
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
  on_threads(rows.threads(), [&] {
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
      for (std::size_t i = 0; i < count; i += most_rows)
        worker(RowBlock{*chunk * store.chunk_rows() + i, std::min(most_rows, count - i), d, *lattice + i * d,
                        convert ? &values[i * d] : nullptr});
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

  ExactAccumulator(Total& sum, std::size_t size, std::size_t most) : total(sum), most_rows(most), partial(size) {}

  // Adds partial[index(i)] to total[i].
  template <class Flush>
  void make_room(std::size_t rows, const Flush& flush) {
    if (pending + rows > most_rows) {
      flush();
      std::fill(partial.begin(), partial.end(), 0.0);
      pending = 0;
    }
    pending += rows;
  }
};

struct GramWorker {
  ExactAccumulator sum;

  void operator()(const RowBlock& block) {
    sum.make_room(block.rows, [&] { flush(block.columns); });
    // C <- C + U^T U, lower triangle. Row-major U is column-major U^T.
    d = block.columns;
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, blas_int(d), blas_int(block.rows), 1.0, block.values,
                blas_int(d), 1.0, sum.partial.data(), blas_int(d));
  }
  void flush(std::size_t n) const {
    const std::lock_guard lock(sum.total.adding);
    Int128* to = sum.total.values.data();
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t row = column; row < n; ++row) *to++ += static_cast<std::int64_t>(sum.partial[column * n + row]);
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
    sum.make_room(block.rows, [&] { flush(); });
    t.resize(block.rows * k);
    fill(block, t.data());
    // C <- C + U^T T
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, blas_int(block.columns), blas_int(k), blas_int(block.rows),
                1.0, block.values, blas_int(block.columns), t.data(), blas_int(k), 1.0, sum.partial.data(),
                blas_int(block.columns));
  }
  void flush() const {
    const std::lock_guard lock(sum.total.adding);
    for (std::size_t i = 0; i < sum.partial.size(); ++i)
      sum.total.values[i] += static_cast<std::int64_t>(sum.partial[i]);
  }
  void finish() const {
    if (sum.pending > 0) flush();
  }
};

struct CountWorker {
  Total& total;
  const AddCounts& add;
  std::vector<std::int64_t> counts;

  void operator()(const RowBlock& block) {
    add(block, counts);
    flush();
  }
  void flush() {
    const std::lock_guard lock(total.adding);
    for (std::size_t i = 0; i < counts.size(); ++i) total.values[i] += counts[i];
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

Result<std::vector<Int128>> count_sum(const BoundedRows& rows, std::size_t size, BlockValues values,
                                      const AddCounts& add) {
  Total total(size);
  EIGENVEIL_TRY(for_each_block(rows, rows.store().chunk_rows(), values == BlockValues::kFill, [&] {
    return CountWorker{total, add, std::vector<std::int64_t>(size)};
  }));
  return std::move(total.values);
}

}  // namespace eigenveil
