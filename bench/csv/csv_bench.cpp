// SPDX-License-Identifier: Apache-2.0
// How fast numeric CSV becomes doubles, on one core, the file being in the page cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/os.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "eigenveil/data/source.hpp"

namespace {

constexpr std::size_t kColumns = 50;
constexpr std::size_t kRows = 200'000;

/// rows x 50 numbers of 8 significant digits; the sum of the parsed numbers is checked against the written ones.
struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("eigenveil-bench-{}.csv", std::rand());
  double sum = 0;
  std::uintmax_t bytes = 0;

  File() {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    {
      auto out = fmt::output_file(path.string(), fmt::file::CREATE | fmt::file::WRONLY | fmt::file::TRUNC);
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t c = 0; c < kColumns; ++c) {
          const std::string text = fmt::format("{:.8g}", uniform(random) * static_cast<double>(1 + c % 10 * 100));
          sum += std::strtod(text.c_str(), nullptr);
          out.print("{}{}", text, c + 1 == kColumns ? '\n' : ',');
        }
    }
    bytes = std::filesystem::file_size(path);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path); }
};

const File& file() {
  static const File made;
  return made;
}

void read_numeric_csv(benchmark::State& state) {
  const auto batch_rows = static_cast<std::size_t>(state.range(0));
  const File& from = file();
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    auto source = eigenveil::open_source(from.path.string(), {.header = eigenveil::HeaderRule::kNo});
    if (!source.ok()) return state.SkipWithError(source.error().message.c_str());
    eigenveil::RawBatch batch;
    std::size_t rows = 0;
    double sum = 0;
    do {
      if (const auto status = (*source)->next(batch, batch_rows); !status.ok())
        return state.SkipWithError(status.error().message.c_str());
      rows += batch.rows;
      for (double value : batch.values) sum += value;
    } while (batch.rows > 0);
    if (rows != kRows || std::fabs(sum - from.sum) > 1e-6) return state.SkipWithError("the parsed numbers are wrong");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(from.bytes * static_cast<std::uintmax_t>(state.iterations())));
}

BENCHMARK(read_numeric_csv)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
