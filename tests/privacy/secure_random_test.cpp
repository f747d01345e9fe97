// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/secure_random.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/statistics.hpp"

namespace eigenveil {
namespace {

TEST(SecureRandom, KernelStreamsDifferFromEachOther) {
  auto one = SecureRandom::from_kernel();
  auto two = SecureRandom::from_kernel();
  EXPECT_TRUE(one.secure());
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 5000; ++i) seen.insert({one.next(), two.next()});
  EXPECT_EQ(seen.size(), 10000U);  // a collision of 64-bit words has probability below 1e-11
}

TEST(SecureRandom, SeededStreamsRepeatAndSayThatTheyAreNotSecure) {
  auto one = SecureRandom::insecure(5);
  auto two = SecureRandom::insecure(5);
  auto other = SecureRandom::insecure(6);
  EXPECT_FALSE(one.secure());
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t word = one.next();
    ASSERT_EQ(word, two.next());
    ASSERT_NE(word, other.next());
  }
}

TEST(SecureRandom, NoBlockOfTheStreamRepeats) {
  auto random = SecureRandom::insecure(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 50000; ++i) seen.insert(random.next());
  EXPECT_EQ(seen.size(), 50000U);
}

TEST(SecureRandom, AMovedFromStreamRepeatsNothing) {
  auto from = SecureRandom::insecure(9);
  auto reference = SecureRandom::insecure(9);
  from.next();
  reference.next();
  auto to = std::move(from);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t word = to.next();
    ASSERT_EQ(word, reference.next());
    ASSERT_NE(word, from.next());  // NOLINT(bugprone-use-after-move): that is the point
  }
}

TEST(SecureRandom, BelowIsUniformForAwkwardLimits) {
  auto random = SecureRandom::insecure(2);
  for (const std::uint64_t n : {1ULL, 2ULL, 3ULL, 7ULL, 100ULL, 129ULL}) {
    std::vector<double> observed(n);
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t x = random.below(n);
      ASSERT_LT(x, n);
      observed[x] += 1;
    }
    double degrees = 0;
    const double statistic =
        test::chi_square(observed, std::vector<double>(n, kDraws / static_cast<double>(n)), degrees);
    EXPECT_LT(statistic, test::chi_square_limit(std::max(1.0, degrees))) << n;
  }
}

// Of 3 * 2^62 numbers a careless multiplication hits every third twice.
TEST(SecureRandom, BelowIsUniformForHugeLimits) {
  auto random = SecureRandom::insecure(4);
  constexpr std::uint64_t kLimit = std::uint64_t{3} << 62;
  std::vector<double> thirds(3);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t x = random.below(kLimit);
    ASSERT_LT(x, kLimit);
    thirds[x % 3] += 1;
  }
  double degrees = 0;
  EXPECT_LT(test::chi_square(thirds, std::vector<double>(3, 1e5 / 3), degrees), test::chi_square_limit(2));
}

}  // namespace
}  // namespace eigenveil
