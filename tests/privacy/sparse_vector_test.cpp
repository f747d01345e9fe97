// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/sparse_vector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/statistics.hpp"

namespace eigenveil {
namespace {

// The exact law of the output, by summing over the noise of the target: an independent computation in doubles. Counts
// are in steps, so many to a row, and noise is on the steps.
std::vector<double> output_law(const std::vector<std::int64_t>& counts, std::int64_t target, double epsilon,
                               int steps = 16) {
  const double scale = 2 / epsilon * steps;
  const double p = std::exp(-1 / scale);
  const auto mass = [&](std::int64_t x) { return (1 - p) / (1 + p) * std::pow(p, std::fabs(static_cast<double>(x))); };
  const auto at_most = [&](std::int64_t x) {
    return x >= 0 ? 1 - std::pow(p, static_cast<double>(x) + 1) / (1 + p)
                  : std::pow(p, static_cast<double>(-x)) / (1 + p);
  };
  const auto reach = static_cast<std::int64_t>(40 * scale);
  std::vector<double> law(counts.size());
  for (std::int64_t z = -reach; z <= reach; ++z) {
    double alive = mass(z);
    for (std::size_t j = 0; j < counts.size(); ++j) {
      const double stop = j + 1 == counts.size() ? 1.0 : at_most(target + z - counts[j]);
      law[j] += alive * stop;
      alive *= 1 - stop;
    }
  }
  return law;
}

TEST(SparseVector, WithHardlyAnyNoiseTakesTheFirstCountAtMostTheTarget) {
  auto random = SecureRandom::insecure(1);
  constexpr double kQuiet = 100;  // some noise once in e^50 draws
  const PrivateCounts counts{{90, 40, 10, 3, 0}};
  EXPECT_EQ(**SparseVector::first_at_most(counts, 10, kQuiet, random), 2U);
  EXPECT_EQ(**SparseVector::first_at_most(counts, 89, kQuiet, random), 1U);
  EXPECT_EQ(**SparseVector::first_at_most(counts, -1, kQuiet, random), 4U) << "the last point always passes";
}

TEST(SparseVector, DrawsFromItsExactLaw) {
  auto random = SecureRandom::insecure(2);
  const PrivateCounts counts{{30, 20, 12, 9, 4, 0}};
  constexpr int kDraws = 300'000;
  std::vector<double> observed(counts.values.size());
  for (int i = 0; i < kDraws; ++i) observed[**SparseVector::first_at_most(counts, 10, 0.7, random)] += 1;
  // 1024 steps are near enough to 2^20: the laws differ by some 2^-10 of what sampling can tell.
  constexpr int kSteps = 1024;
  std::vector<std::int64_t> in_steps = counts.values;
  for (auto& c : in_steps) c *= kSteps;
  std::vector<double> expected = output_law(in_steps, 10 * kSteps + kSteps / 2, 0.7, kSteps);
  for (double& e : expected) e *= kDraws;
  double degrees = 0;
  const double statistic = test::chi_square(observed, expected, degrees);
  EXPECT_LT(statistic, test::chi_square_limit(degrees));  // false alarm 1e-7
}

// The proof's claim on its own law: neighbours whose counts all move the same way by at most one.
TEST(SparseVector, NeighboursDifferByAtMostEpsilon) {
  std::mt19937_64 random(3);
  double closest = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const double epsilon = std::exp(std::uniform_real_distribution<>(-2, 1)(random));
    std::vector<std::int64_t> counts;
    std::int64_t count = 0;
    for (int j = 0; j < 6; ++j) counts.insert(counts.begin(), count += static_cast<std::int64_t>(random() % 6));
    auto neighbour = counts;
    for (auto& c : neighbour) c += static_cast<std::int64_t>(trial % 3 == 0 ? 1 : random() % 2);
    const auto target = static_cast<std::int64_t>(random() % 12);
    const auto one = output_law(counts, target, epsilon, 1);
    const auto two = output_law(neighbour, target, epsilon, 1);
    for (std::size_t j = 0; j < one.size(); ++j) {
      const double loss = std::fabs(std::log(one[j] / two[j]));
      ASSERT_LE(loss, epsilon * (1 + 1e-9));
      closest = std::max(closest, loss / epsilon);
    }
  }
  EXPECT_GT(closest, 0.4);
}

// A person's rows share a weight of one: averages of prefixes of ones.
std::vector<std::int64_t> share_of_a_person(std::mt19937_64& random, std::size_t points, int steps) {
  std::vector<std::int64_t> ends(points, 0);
  const std::size_t m = 1 + random() % 16;
  const std::int64_t weight = steps / static_cast<std::int64_t>(m);
  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t above = random() % (points + 1);
    for (std::size_t j = 0; j < above; ++j) ends[j] += weight;
  }
  return ends;
}

// The proof's claim for people: two shares that may cross, on counts of everybody else.
TEST(SparseVector, PeopleDifferByAtMostEpsilon) {
  constexpr int kSteps = 16;
  std::mt19937_64 random(5);
  double closest = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const double epsilon = std::exp(std::uniform_real_distribution<>(-1, 1)(random));
    std::vector<std::int64_t> others;
    std::int64_t count = 0;
    for (int j = 0; j < 5; ++j)
      others.insert(others.begin(), count += static_cast<std::int64_t>(random() % (trial % 2 == 0 ? 40 : 400)));
    auto p = share_of_a_person(random, others.size(), kSteps);
    auto q = share_of_a_person(random, others.size(), kSteps);
    if (trial % 5 == 0) std::fill(q.begin(), q.end(), 0);  // added or removed
    auto one = others, two = others;
    for (std::size_t j = 0; j < others.size(); ++j) {
      one[j] += p[j];
      two[j] += q[j];
    }
    const auto target = static_cast<std::int64_t>(random() % 200);
    const auto law = output_law(one, target, epsilon, kSteps);
    const auto other = output_law(two, target, epsilon, kSteps);
    for (std::size_t j = 0; j < law.size(); ++j) {
      const double loss = std::fabs(std::log(law[j] / other[j]));
      ASSERT_LE(loss, epsilon * (1 + 1e-9)) << trial;
      closest = std::max(closest, loss / epsilon);
    }
  }
  // The edge: many points that are passed, then one that the person does not reach.
  std::vector<std::int64_t> one(60, kSteps), two(60, 0);
  one.insert(one.end(), {0, 0});
  two.insert(two.end(), {0, 0});
  const auto law = output_law(one, 0, 1, kSteps), other = output_law(two, 0, 1, kSteps);
  for (std::size_t j = 0; j < law.size(); ++j) {
    const double loss = std::fabs(std::log(law[j] / other[j]));
    ASSERT_LE(loss, 1 + 1e-9);
    closest = std::max(closest, loss);
  }
  EXPECT_GT(closest, 0.999);
}

// The condition is needed: shares that are no averages of prefixes move one count up and another down by a whole.
TEST(SparseVector, WhatIsNoPrefixWouldExceedEpsilon) {
  std::vector<std::int64_t> up(60, 16), down(60, 0);
  up.insert(up.end(), {0, 0});
  down.insert(down.end(), {16, 0});
  const auto one = output_law(up, 0, 1, 16);
  const auto two = output_law(down, 0, 1, 16);
  double most = 0;
  for (std::size_t j = 0; j < one.size(); ++j) most = std::max(most, std::fabs(std::log(one[j] / two[j])));
  EXPECT_GT(most, 1.49);
}

TEST(SparseVector, RefusesEpsilonsItCannotDraw) {
  auto random = SecureRandom::insecure(4);
  EXPECT_FALSE(SparseVector::first_at_most(PrivateCounts{{1, 0}}, 0, 1e-12, random).ok());
  EXPECT_FALSE(SparseVector::first_at_most(PrivateCounts{}, 0, 1, random).ok());
}

}  // namespace
}  // namespace eigenveil
