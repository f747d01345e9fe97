#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#ifdef __SANITIZE_THREAD__
#include <omp.h>

#include <thread>
#include <vector>
#endif

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

/// Runs `body` once on each of `threads` threads and waits for all. OpenMP, because OpenBLAS stays single-threaded
/// inside its parallel regions; plain threads under the thread sanitizer, which cannot see OpenMP's barriers.
template <class Body>
void on_threads(int threads, const Body& body) {
#ifdef __SANITIZE_THREAD__
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([&] {
      omp_set_num_threads(1);
      body();
    });
  for (std::thread& thread : pool) thread.join();
#else
#pragma omp parallel num_threads(threads)
  body();
#endif
}

}  // namespace eigenveil
