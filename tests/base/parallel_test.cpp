// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/parallel.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>

namespace eigenveil {
namespace {

constexpr std::size_t kMany = 1000;

// New threads cannot be had, as nobody has room for their stacks, while this lives.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

TEST(OnThreads, EachTicketIsDoneOnceWhileBlasUsesOneThread) {
  const int before = omp_get_max_threads();
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> done(kMany);
    std::atomic<bool> alone = true;
    std::atomic<int> runs = 0;
    Tickets tickets(kMany);
    on_threads(threads, [&] {
      ++runs;
      if (omp_get_max_threads() != 1) alone = false;
      while (const auto i = tickets.next()) ++done[*i];
    });
    for (const auto& one : done) EXPECT_EQ(one, 1);
    EXPECT_TRUE(alone);
    EXPECT_EQ(runs, std::max(1, threads));
    EXPECT_EQ(omp_get_max_threads(), before);
  }
}

TEST(OnThreads, WhatOneThrowsReachesTheCallerWhenAllHaveEnded) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 7}) {
    std::atomic<int> running = 0;
    Tickets tickets(kMany);
    const auto body = [&] {
      ++running;
      while (const auto i = tickets.next())
        if (*i == 3) {
          --running;
          throw std::bad_alloc();
        }
      --running;
    };
    EXPECT_THROW(on_threads(threads, body), std::bad_alloc);
    EXPECT_EQ(running, 0);
    EXPECT_EQ(omp_get_max_threads(), before);
  }
  std::atomic<int> thrown = 0;
  try {
    on_threads(7, [&] { throw std::runtime_error(std::to_string(++thrown)); });
    FAIL() << "all of them threw";
  } catch (const std::runtime_error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
  }
  EXPECT_EQ(thrown, 7);
}

TEST(OnThreads, FewerThreadsThanAskedForDoTheSameWork) {
  const int before = omp_get_max_threads();
  std::atomic<int> done = 0;
  {
    const NoMoreThreads none;
    EXPECT_ANY_THROW(std::thread([] {}).join()) << "the test does nothing";
    Tickets tickets(kMany);
    on_threads(4, [&] {
      while (tickets.next()) ++done;
    });
  }
  EXPECT_EQ(done, kMany);
  EXPECT_EQ(omp_get_max_threads(), before);

  // The first to run is the last that there is.
  std::optional<NoMoreThreads> none;
  std::atomic<bool> first = true;
  std::atomic<int> runs = 0;
  Tickets tickets(kMany);
  on_threads(500, [&] {
    ++runs;
    if (first.exchange(false)) none.emplace();
    while (tickets.next()) ++done;
  });
  none.reset();
  EXPECT_EQ(done, 2 * kMany);
  EXPECT_GE(runs, 1);
  EXPECT_LE(runs, 500);
}

}  // namespace
}  // namespace eigenveil
