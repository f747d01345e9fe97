// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/lattice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace eigenveil {
namespace {

std::vector<std::int32_t> bound(const std::vector<double>& row, const Lattice& lattice) {
  std::vector<std::int32_t> u(row.size());
  bound_row(row.data(), row.size(), lattice, u.data());
  return u;
}

double square(double x) { return x * x; }

double any_double(std::mt19937_64& random) {
  for (;;) {
    const std::uint64_t bits = random();
    double value;
    static_assert(sizeof(value) == sizeof(bits));
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) return value;
  }
}

TEST(Lattice, NoRowOfAnyDoublesIsLongerThanTheBound) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    const Lattice lattice{std::exp(std::uniform_real_distribution<>(-200, 200)(random)),
                          std::uniform_int_distribution<>(4, 20)(random)};
    std::vector<double> row(std::uniform_int_distribution<std::size_t>(1, 40)(random));
    const int kind = trial % 4;
    for (double& x : row) {
      if (kind == 0) x = any_double(random);
      if (kind == 1) x = std::normal_distribution<>()(random) * lattice.radius;
      if (kind == 2) x = lattice.radius / std::sqrt(static_cast<double>(row.size()));
      if (kind == 3) x = std::numeric_limits<double>::denorm_min() * static_cast<double>(random() % 5);
    }
    const auto u = bound(row, lattice);
    ASSERT_LE(squared_norm(u.data(), u.size()), lattice.norm_bound() * lattice.norm_bound());
  }
}

// Rows of exactly the bound's length are where rounding overshoots.
RC_GTEST_PROP(Lattice, RowsOnTheSphereStayInside, ()) {
  const int bits = *rc::gen::inRange(4, 21);
  const auto raw = *rc::gen::nonEmpty<std::vector<int>>();
  double norm = 0;
  for (const int x : raw) norm = std::hypot(norm, x);
  RC_PRE(norm > 0);
  std::vector<double> row;
  for (const int x : raw) row.push_back(x * (3.7 / norm));
  const Lattice lattice{3.7, bits};
  const auto u = bound(row, lattice);
  RC_ASSERT(squared_norm(u.data(), u.size()) <= lattice.norm_bound() * lattice.norm_bound());
}

// Floating point hardly ever leaves a row too long, so the step that would catch it is tested by itself.
TEST(Lattice, IntegersThatAreTooLongAreShrunkUntilTheyFit) {
  std::mt19937_64 random(3);
  const std::int64_t L = 1 << 20;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int32_t> row(1 + random() % 20);
    row[0] = static_cast<std::int32_t>(L);
    for (std::size_t j = 1; j < row.size(); ++j) row[j] = static_cast<std::int32_t>(random() % 3);
    if (trial == 0) row = {static_cast<std::int32_t>(L) + 1};
    if (trial == 1) row = {static_cast<std::int32_t>(L), -1};
    shrink_to_bound(row.data(), row.size(), L);
    ASSERT_LE(squared_norm(row.data(), row.size()), L * L);
    ASSERT_GT(row[0], L - 20) << "and not more than needed";
  }
}

TEST(Lattice, RowsWithinTheBoundMoveByLessThanOneStep) {
  std::mt19937_64 random(2);
  const Lattice lattice{5.0, 20};
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> row(10);
    for (double& x : row) x = std::uniform_real_distribution<>(-1.5, 1.5)(random);
    const auto u = bound(row, lattice);
    for (std::size_t j = 0; j < row.size(); ++j) {
      EXPECT_LE(std::fabs(u[j] * lattice.unit()), std::fabs(row[j]));
      EXPECT_LT(std::fabs(u[j] * lattice.unit() - row[j]), 1.01 * lattice.unit());
    }
  }
}

TEST(Lattice, LongRowsKeepTheirDirection) {
  const Lattice lattice{2.0, 20};
  const std::vector<double> row = {3e200, -4e200};
  const auto u = bound(row, lattice);
  EXPECT_NEAR(u[0] * lattice.unit(), 1.2, 1e-5);
  EXPECT_NEAR(u[1] * lattice.unit(), -1.6, 1e-5);
}

TEST(Lattice, RowsThatAreNotFiniteBecomeZero) {
  const Lattice lattice{1.0, 20};
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    const std::vector<double> row = {0.5, bad, 0.5};
    std::vector<std::int32_t> u(3, 7);
    EXPECT_EQ(bound_row(row.data(), 3, lattice, u.data()), RowFate::kNotFinite);
    EXPECT_EQ(u, (std::vector<std::int32_t>{0, 0, 0}));
  }
}

TEST(Lattice, TellsClippedRowsFromKeptOnes) {
  const Lattice lattice{1.0, 20};
  std::vector<std::int32_t> u(2);
  const std::vector<double> inside = {0.6, 0.7};
  const std::vector<double> outside = {0.8, 0.7};
  EXPECT_EQ(bound_row(inside.data(), 2, lattice, u.data()), RowFate::kKept);
  EXPECT_EQ(bound_row(outside.data(), 2, lattice, u.data()), RowFate::kShortened);
}

// The long way, for every row: u_j = trunc(a_j / max(B, ||a||) * L), with ||a|| = m s.
RowFate long_way(const std::vector<double>& row, const Lattice& lattice, std::vector<std::int32_t>& u) {
  u.assign(row.size(), 0);
  double m = 0;
  for (const double x : row) {
    if (!std::isfinite(x)) return RowFate::kNotFinite;
    m = std::max(m, std::fabs(x));
  }
  if (m == 0) return RowFate::kKept;
  double squares = 0;
  for (const double x : row) squares += (x / m) * (x / m);
  const double s = std::sqrt(squares);
  const bool too_long = m > lattice.radius / s;
  const auto L = static_cast<double>(lattice.norm_bound());
  for (std::size_t j = 0; j < row.size(); ++j)
    u[j] = static_cast<std::int32_t>(row[j] / (too_long ? m : lattice.radius) * (too_long ? L / s : L));
  shrink_to_bound(u.data(), u.size(), lattice.norm_bound());
  return too_long ? RowFate::kShortened : RowFate::kKept;
}

TEST(Lattice, TheShortWayFindsWhatTheLongOneFinds) {
  std::mt19937_64 random(4);
  std::normal_distribution<> normal;
  for (int trial = 0; trial < 100000; ++trial) {
    std::uniform_real_distribution<> exponent(trial % 3 == 0 ? -690 : -3, trial % 3 == 0 ? 690 : 3);
    const Lattice lattice{std::exp(exponent(random)), 4 + trial % 17};
    std::vector<double> row(1 + random() % 40);
    double squares = 0;
    for (double& x : row) squares += square(x = normal(random));
    // From far inside over a hair's breadth on either side to far outside.
    const double nearly = std::ldexp(normal(random), -static_cast<int>(random() % 60));
    const double length = trial % 2 == 0 ? 1 + nearly : std::fabs(normal(random));
    for (double& x : row) x = x / std::sqrt(squares) * length * lattice.radius;
    if (trial % 50 == 0) row[random() % row.size()] = std::numeric_limits<double>::quiet_NaN();
    if (trial % 50 == 1) row[random() % row.size()] = -std::numeric_limits<double>::infinity();
    if (trial % 50 == 2) std::fill(row.begin(), row.end(), -0.0);
    std::vector<std::int32_t> u(row.size(), 7), expected;
    const RowFate fate = bound_row(row.data(), row.size(), lattice, u.data());
    ASSERT_EQ(fate, long_way(row, lattice, expected)) << trial;
    ASSERT_EQ(u, expected) << trial;
  }
}

}  // namespace
}  // namespace eigenveil
