// SPDX-License-Identifier: Apache-2.0
// The call from C++ that bench/python/speed.py puts beside the one from Python: the same rows, made by the same
// formula. Usage: bench_front [ROWS COLUMNS [THREADS]]; a fit for every line of its input, or one if nothing was said.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>

#include "eigenveil/eigenveil.hpp"

namespace {

/// Kilobytes of this process: VmRSS now, VmHWM at most since `forget_peak`.
double kilobytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double value = 0; word == field + ":" && status >> value) return value;
  return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double cpu_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

eigenveil::RowMajorMatrix made_up(Eigen::Index rows, Eigen::Index columns) {
  eigenveil::RowMajorMatrix X(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < columns; ++j)
      X(i, j) = static_cast<double>((i * 7919 + j * j * 613 + i / 17 * j) % 1009) / 1009 - 0.5;
  return X;
}

int fit(const eigenveil::RowMajorMatrix& X, int threads) {
  forget_peak();
  const double before = kilobytes("VmRSS"), cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  const auto found =
      eigenveil::pca(X, {.components = 5, .row_bound = 20.0, .threads = threads},
                     {.epsilon = 1, .delta = 1e-6, .ledger = eigenveil::Ledger::none(), .insecure_seed = 1});
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!found) {
    fmt::print(stderr, "{}\n", found.error().message);
    return 1;
  }
  fmt::print("{{\"wall\": {:.4f}, \"cpu\": {:.4f}, \"peak_mb\": {:.1f}, \"first\": \"{:a}\"}}\n", wall,
             cpu_seconds() - cpu, (kilobytes("VmHWM") - before) / 1024, found->components(0, 0));
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Eigen::Index rows = argc > 1 ? std::stol(argv[1]) : 20'000, columns = argc > 2 ? std::stol(argv[2]) : 100;
  const int threads = argc > 3 ? std::stoi(argv[3]) : 1;
  const auto X = made_up(rows, columns);
  if (argc == 1) return fit(X, threads);
  for (std::string line; std::getline(std::cin, line);)
    if (const int failed = fit(X, threads); failed != 0) return failed;
  return 0;
}
