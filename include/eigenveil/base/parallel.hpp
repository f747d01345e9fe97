// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

namespace eigenveil {

/// Hands out 0, 1, ..., count - 1 to whoever asks next.
class Tickets {
 public:
  explicit Tickets(std::size_t count) : count_(count) {}
  std::optional<std::size_t> next() {
    const std::size_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    return ticket < count_ ? std::optional(ticket) : std::nullopt;
  }

 private:
  std::size_t count_;
  std::atomic<std::size_t> next_ = 0;
};

/// Runs `body` once on each of `threads` threads and waits for all; a single one is the caller's own. They are new
/// threads and not OpenMP's, which spin while they wait for each other and make a busy machine slower still. OpenBLAS
/// and Eigen stay single-threaded meanwhile.
template <class Body>
void on_threads(int threads, const Body& body) {
  if (threads <= 1) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    body();
    omp_set_num_threads(before);
    return;
  }
  std::vector<std::thread> pool;
  pool.reserve(threads);
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([&] {
      omp_set_num_threads(1);
      body();
    });
  for (std::thread& thread : pool) thread.join();
}

/// What `body` returns, computed while BLAS and Eigen use no further threads: for many small computations.
template <class Body>
auto on_one_thread(const Body& body) {
  std::optional<decltype(body())> result;
  on_threads(1, [&] { result.emplace(body()); });
  return *std::move(result);
}

}  // namespace eigenveil
