// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <iterator>
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

/// The first exception of several threads, for whoever waits for them: one that left a thread would end the program.
class FirstException {
 public:
  template <class Body>
  void guard(const Body& body) noexcept {
    try {
      body();
    } catch (...) {
      if (!caught_.exchange(true)) first_ = std::current_exception();
    }
  }
  /// Once all threads are joined.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> caught_ = false;
  std::exception_ptr first_;
};

/// OpenBLAS and Eigen use one thread as long as it lives.
class SingleThreaded {
 public:
  SingleThreaded() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;
  ~SingleThreaded() { omp_set_num_threads(before_); }

 private:
  int before_;
};

/// Runs `body` once on each of `threads` threads and waits for all; a single one is the caller's own. Where the system
/// gives fewer threads it runs on those, so bodies share their work out by tickets. What one of them throws is thrown
/// here. They are new threads and not OpenMP's, which spin while they wait for each other and make a busy machine
/// slower still. OpenBLAS and Eigen stay single-threaded meanwhile.
template <class Body>
void on_threads(int threads, const Body& body) {
  FirstException first;
  std::vector<std::thread> pool;
  try {
    if (threads > 1) pool.reserve(threads);
    while (threads > 1 && std::ssize(pool) < threads)
      pool.emplace_back([&] {
        omp_set_num_threads(1);
        first.guard(body);
      });
  } catch (const std::exception&) {  // no memory, or no more threads
  }
  if (pool.empty()) {
    const SingleThreaded here;
    body();
  }
  for (std::thread& thread : pool) thread.join();
  first.rethrow();
}

/// What `body` returns, computed while BLAS and Eigen use no further threads: for many small computations.
template <class Body>
auto on_one_thread(const Body& body) {
  std::optional<decltype(body())> result;
  on_threads(1, [&] { result.emplace(body()); });
  return *std::move(result);
}

}  // namespace eigenveil
