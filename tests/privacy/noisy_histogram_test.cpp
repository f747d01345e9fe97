// SPDX-License-Identifier: Apache-2.0
// Counts by cell: how far a row moves them, and which point they find.
#include "eigenveil/privacy/noisy_histogram.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace eigenveil {
namespace {

constexpr double kHardlyAnyNoise = 0x1p15;  // deviations of 2^-15 rows

Released<Matrix> released(const PrivateSum& cells) {
  SecureRandom random = SecureRandom::insecure(1);
  return *GaussianMechanism::release(cells, Mu(kHardlyAnyNoise), random);
}

PrivateCounts counts_of(const std::vector<std::uint8_t>& statistics) {
  PrivateCounts above{std::vector<std::int64_t>(10)};
  for (const std::uint8_t statistic : statistics)
    for (std::size_t j = 0; j < above.values.size(); ++j) above.values[j] += statistic > 20 * j;
  return above;
}

// Added up over holders, cells find the point that the counts of all rows have.
RC_GTEST_PROP(NoisyHistogram, FindsTheFirstPointThatFewEnoughExceed, (std::vector<std::uint8_t> a)) {
  std::vector<std::uint8_t> b(a.rbegin(), a.rend());
  for (std::uint8_t& x : b) x = static_cast<std::uint8_t>(x / 2);
  const PrivateCounts one = counts_of(a);
  const PrivateCounts two = counts_of(b);
  PrivateSum both = NoisyHistogram::cells(one, Adjacency::kReplaceOne);
  const PrivateSum more = NoisyHistogram::cells(two, Adjacency::kReplaceOne);
  for (std::size_t j = 0; j < both.values.size(); ++j) both.values[j] += more.values[j];
  const auto target = *rc::gen::inRange<std::int64_t>(-1, 100);
  std::size_t expected = 0;
  while (expected + 1 < 10 && one.values[expected] + two.values[expected] > target) ++expected;
  // between integers, where noise that small decides nothing
  Released<Matrix> cells = released(both);
  const auto found = *NoisyHistogram::first_at_most(cells, target);
  RC_ASSERT(found == expected || one.values[expected] + two.values[expected] == target);
}

// The sensitivity that the noise is scaled by, without tolerance: squared distance 2 for a replaced row, 1 for a
// removed one.
RC_GTEST_PROP(NoisyHistogram, NeighboursMoveTheCellsByNoMoreThanTheProofSays, (std::vector<std::uint8_t> rows)) {
  rows.push_back(*rc::gen::arbitrary<std::uint8_t>());
  const auto distance = [](const PrivateSum& a, const PrivateSum& b) {
    Int128 sum = 0;
    for (std::size_t j = 0; j < a.values.size(); ++j) sum += (a.values[j] - b.values[j]) * (a.values[j] - b.values[j]);
    return static_cast<double>(sum);
  };
  const PrivateSum before = NoisyHistogram::cells(counts_of(rows), Adjacency::kReplaceOne);
  auto replaced = rows;
  replaced.back() = *rc::gen::arbitrary<std::uint8_t>();
  const PrivateSum after = NoisyHistogram::cells(counts_of(replaced), Adjacency::kReplaceOne);
  RC_ASSERT(distance(before, after) <= before.moved.value() * before.moved.value());
  replaced.pop_back();
  const PrivateSum removed = NoisyHistogram::cells(counts_of(replaced), Adjacency::kAddRemoveOne);
  RC_ASSERT(distance(before, removed) <= removed.moved.value() * removed.moved.value());
}

TEST(NoisyHistogram, HasTheScaleThatItsSensitivityAsksFor) {
  for (const auto& [adjacency, moved] :
       {std::pair{Adjacency::kReplaceOne, std::sqrt(2.0)}, std::pair{Adjacency::kAddRemoveOne, 1.0}}) {
    SecureRandom random = SecureRandom::insecure(7);
    const PrivateSum cells = NoisyHistogram::cells({std::vector<std::int64_t>(20000)}, adjacency);
    const auto noisy = *GaussianMechanism::release(cells, Mu(0.5), random);
    const double variance = noisy.value().squaredNorm() / 20000;
    const double due = moved * moved / 0.25;
    EXPECT_NEAR(variance / due, 1, 5 * std::sqrt(2.0 / 20000));  // false alarms: 6e-7
  }
}

}  // namespace
}  // namespace eigenveil
