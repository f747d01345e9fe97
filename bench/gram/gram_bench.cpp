// SPDX-License-Identifier: Apache-2.0
// The exact Gram matrix of 200,000 x 500 rows on two threads, beside OpenBLAS's dsyrk on plain doubles with two
// threads. Reports GFLOP/s (n d^2 operations). tests/rows/kernels_test.cpp checks the sums.
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <omp.h>

#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/rows/kernels.hpp"

namespace {

using namespace eigenveil;  // NOLINT(google-build-using-namespace)

constexpr Eigen::Index kRows = 200'000;
constexpr Eigen::Index kColumns = 500;
constexpr double kOperations = static_cast<double>(kRows) * kColumns * kColumns;

const RowMajorMatrix& raw_rows() {
  static const RowMajorMatrix rows = [] {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    RowMajorMatrix values(kRows, kColumns);
    for (Eigen::Index i = 0; i < values.size(); ++i) values.data()[i] = normal(random) * 0.04F;
    return values;
  }();
  return rows;
}

void set_rate(benchmark::State& state) {
  state.counters["GFLOP/s"] = benchmark::Counter(kOperations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void exact_gram(benchmark::State& state) {
  MemorySource source(raw_rows());
  BoundingOptions options{.bound = *RowBound::of(1)};
  options.threads = 2;
  const auto rows = BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
  for (auto _ : state) benchmark::DoNotOptimize(gram_sum(*rows)->data());
  set_rate(state);
}

void plain_dsyrk(benchmark::State& state) {
  omp_set_num_threads(2);
  const RowMajorMatrix& rows = raw_rows();
  Matrix G(kColumns, kColumns);
  for (auto _ : state) {
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, kColumns, kRows, 1.0, rows.data(), kColumns, 0.0, G.data(),
                kColumns);
    benchmark::DoNotOptimize(G.data());
  }
  set_rate(state);
}

BENCHMARK(plain_dsyrk)->Unit(benchmark::kMillisecond)->UseRealTime()->Repetitions(3)->ReportAggregatesOnly();
BENCHMARK(exact_gram)->Unit(benchmark::kMillisecond)->UseRealTime()->Repetitions(3)->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
