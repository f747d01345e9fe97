// Counts by cell with discrete Laplace noise.
#include "eigenveil/privacy/noisy_histogram.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace eigenveil {
namespace {

constexpr double kQuiet = 100;  // some noise once in e^50 draws

PrivateCounts falling(std::vector<std::uint16_t> steps) {
  PrivateCounts counts;
  std::int64_t above = 0;
  for (const std::uint16_t step : steps) counts.values.insert(counts.values.begin(), above += step % 50);
  return counts;
}

// Added up over holders, cells find the point that the counts of all rows have.
RC_GTEST_PROP(NoisyHistogram, FindsThePointOfTheSparseVectorWithoutNoise, (std::vector<std::uint16_t> a)) {
  a.resize(a.size() + 3);
  auto b = a;
  std::reverse(b.begin(), b.end());
  const PrivateCounts one = falling(a);
  const PrivateCounts two = falling(b);
  PrivateCounts both = one;
  SecureRandom random = SecureRandom::insecure(1);
  auto cells = **NoisyHistogram::release(one, Adjacency::kReplaceOne, kQuiet, random);
  const auto more = **NoisyHistogram::release(two, Adjacency::kReplaceOne, kQuiet, random);
  for (std::size_t j = 0; j < cells.size(); ++j) {
    cells[j] += more[j];
    both.values[j] += two.values[j];
  }
  const auto target = *rc::gen::inRange<std::int64_t>(-1, 100);
  RC_ASSERT(*NoisyHistogram::first_at_most(cells, target) ==
            **SparseVector::first_at_most(both, target, kQuiet, random));
}

std::vector<std::int64_t> cells_of(const std::vector<std::uint8_t>& statistics, SecureRandom& random) {
  PrivateCounts above{std::vector<std::int64_t>(10)};
  for (const std::uint8_t statistic : statistics)
    for (std::size_t j = 0; j < above.values.size(); ++j) above.values[j] += statistic > 20 * j;
  return **NoisyHistogram::release(above, Adjacency::kReplaceOne, kQuiet, random);
}

// The sensitivity that the noise is scaled by, without tolerance: 2 for a replaced row, 1 for a removed one.
RC_GTEST_PROP(NoisyHistogram, NeighboursMoveTheCellsByNoMoreThanTheProofSays, (std::vector<std::uint8_t> rows)) {
  rows.push_back(*rc::gen::arbitrary<std::uint8_t>());
  SecureRandom random = SecureRandom::insecure(1);
  const auto distance = [](const auto& a, const auto& b) {
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < a.size(); ++j) sum += std::abs(a[j] - b[j]);
    return sum;
  };
  const auto before = cells_of(rows, random);
  auto replaced = rows;
  replaced.back() = *rc::gen::arbitrary<std::uint8_t>();
  auto removed = rows;
  removed.pop_back();
  RC_ASSERT(distance(before, cells_of(replaced, random)) <= 2);
  RC_ASSERT(distance(before, cells_of(removed, random)) <= 1);
}

// P(x) in proportion to exp(-|x| epsilon / moved): the mean of |x| tells the scale.
TEST(NoisyHistogram, HasTheScaleThatItsSensitivityAsksFor) {
  SecureRandom random = SecureRandom::insecure(2);
  const PrivateCounts counts{std::vector<std::int64_t>(1000, 7)};  // one cell of seven, 999 empty ones
  for (const auto& [adjacency, moved] : {std::pair{Adjacency::kReplaceOne, 2.0}, {Adjacency::kAddRemoveOne, 1.0}}) {
    double sum = 0;
    constexpr int kDraws = 40;
    for (int i = 0; i < kDraws; ++i) {
      const auto cells = **NoisyHistogram::release(counts, adjacency, 0.5, random);
      for (std::size_t j = 0; j + 1 < cells.size(); ++j) sum += std::abs(static_cast<double>(cells[j]));
    }
    const double q = std::exp(-0.5 / moved);
    const double expected = 2 * q / (1 - q * q);
    EXPECT_NEAR(sum / (kDraws * 999) / expected, 1, 0.03);
  }
}

TEST(NoisyHistogram, RefusesAnEpsilonThatCannotBeDrawn) {
  SecureRandom random = SecureRandom::insecure(3);
  EXPECT_FALSE(NoisyHistogram::release({{1}}, Adjacency::kReplaceOne, 1e-12, random).ok());
}

}  // namespace
}  // namespace eigenveil
