// SPDX-License-Identifier: Apache-2.0
// What people cost: reading 10 million rows of a million people, and a Gram matrix of people with 20 rows each, beside
// the same rows without people.
//   bench_people [ROWS [reading|gram|memory]]
#include <fmt/format.h>
#include <fmt/os.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/rows/kernels.hpp"
#include "eigenveil/rows/people.hpp"

namespace {

using namespace eigenveil;

double seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "bench_people: {}\n", result.error().message);
  std::exit(5);
}

void reading(std::size_t rows) {
  constexpr int kColumns = 10;
  const std::size_t people = rows / 10;
  const auto path = std::filesystem::temp_directory_path() / fmt::format("eigenveil-people-{}.csv", std::rand());
  {
    std::mt19937_64 random(1);
    auto out = fmt::output_file(path.string(), fmt::file::CREATE | fmt::file::WRONLY | fmt::file::TRUNC);
    for (std::size_t i = 0; i < rows; ++i) {
      out.print("P{:07}", random() % people);
      for (int j = 0; j < kColumns; ++j) out.print(",{:.4f}", static_cast<double>(random() % 20000) / 10000 - 1);
      out.print("\n");
    }
  }
  RowOptions options;
  options.data = path.string();
  options.source.header = HeaderRule::kNo;
  options.source.fields = kColumns + 1;
  options.source.columns = {"2-11"};
  options.ranges = {"-1:1"};
  RunOptions run;
  run.memory = std::size_t{6} << 30;
  Observer silent;
  const auto read = [&] { must(bound_rows(options, run, 0, silent)); };
  read();  // the file is in the page cache
  double without = 1e300, with = 1e300;
  for (int i = 0; i < 5; ++i) {
    options.person.reset();
    without = std::min(without, seconds(read));
    options.person = PersonOptions{"1"};
    with = std::min(with, seconds(read));
  }
  std::filesystem::remove(path);
  fmt::print("reading {} rows of {} columns: {:.2f} s; with {} people: {:.2f} s ({:+.0f}%)\n", rows, kColumns, without,
             people, with, 100 * (with / without - 1));
}

/// How much counting takes beside the ids and the counts themselves, for people who have two rows each.
void memory(std::size_t people) {
  const auto resident = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return 1024 * std::stod(line.substr(6));
    return 0.0;
  };
  PersonIds ids(std::size_t{12} << 30, "");
  for (std::size_t i = 0; i < 2 * people; ++i) {
    const PersonId id = must(person_of(static_cast<double>(i % people), {}));
    if (!ids.append(&id, 1)) std::exit(5);
  }
  const double before = resident();
  const auto counts = must(ids.count_rows(1));
  const double rows = 4.0 * 2 * static_cast<double>(people);  // what is told of each
  fmt::print("counting {} people: {:.1f} bytes per person\n", counts.people,
             (resident() - before - rows) / static_cast<double>(people));
}

class Peopled final : public RowSource {
 public:
  Peopled(RowMajorMatrix rows, std::size_t each) : rows_(std::move(rows)), each_(each) {}
  const std::vector<std::string>& columns() const override { return rows_.columns(); }
  std::optional<std::size_t> rows_announced() const override { return rows_.rows_announced(); }
  double progress() const override { return rows_.progress(); }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    EIGENVEIL_TRY(rows_.next(batch, max_rows));
    batch.people.clear();
    // each_ 0: geometric, mean 20
    for (std::size_t i = 0; i < batch.rows; ++i) {
      if (left_ == 0) {
        ++person_;
        left_ = each_ > 0 ? each_ : 1 + static_cast<std::size_t>(std::geometric_distribution<int>(0.05)(random_));
      }
      --left_;
      batch.people.push_back({person_ * 0x9e3779b97f4a7c15, person_});
    }
    return {};
  }

 private:
  MemorySource rows_;
  std::size_t each_, left_ = 0;
  std::uint64_t person_ = 0;
  std::mt19937_64 random_;
};

void gram(std::size_t rows) {
  for (const Eigen::Index d : {10, 50, 200}) {
    const auto n = static_cast<Eigen::Index>(rows * 10) / d;
    const RowMajorMatrix X = RowMajorMatrix::Random(n, d);
    const auto bounded = [&](std::optional<std::size_t> each) {
      Peopled source(X, each.value_or(1));
      BoundingOptions options{.bound = must(RowBound::of(std::sqrt(static_cast<double>(d))))};
      if (each) options.person = PersonRule{.numbered = false};
      options.memory_bytes = std::size_t{8} << 30;
      return must(BoundedRows::read(source, ColumnMap::identity(source.columns()), options));
    };
    // In turns, so that whatever else the machine does meets all of them.
    const BoundedRows held[] = {bounded({}), bounded(20), bounded(0)};
    double best[] = {1e300, 1e300, 1e300};
    for (int i = 0; i < 9; ++i)
      for (int j = 0; j < 3; ++j) best[j] = std::min(best[j], seconds([&] { must(gram_sum(held[j])); }));
    const auto [without, twenty, geometric] = best;
    fmt::print("Gram of {} x {}: {:.3f} s; 20 rows each: {:.3f} s ({:.2f} times); geometric: {:.3f} s ({:.2f} times)\n",
               n, d, without, twenty, twenty / without, geometric, geometric / without);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const std::string part = argc > 2 ? argv[2] : "";
  if (part.empty() || part == "reading") reading(rows);
  if (part.empty() || part == "gram") gram(rows / 10);
  if (part.empty() || part == "memory") memory(rows / 2);
  return 0;
}
