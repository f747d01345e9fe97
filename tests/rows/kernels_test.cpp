// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::lattice_rows;
using test::LatticeRow;
using test::RowsSetup;

std::vector<LatticeRow> random_rows(std::size_t n, std::size_t d, int bits, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<LatticeRow> rows(n, LatticeRow(d));
  std::vector<double> values(d);
  for (LatticeRow& row : rows) {
    for (double& x : values) x = normal(random);
    // long enough to be shortened, so that entries use all their bits
    bound_row(values.data(), d, Lattice{0.5, bits}, row.data());
  }
  return rows;
}

std::vector<Int128> slow_gram(const std::vector<LatticeRow>& rows, std::size_t d) {
  std::vector<Int128> sum;
  for (std::size_t column = 0; column < d; ++column)
    for (std::size_t row = column; row < d; ++row) {
      Int128 total = 0;
      for (const LatticeRow& u : rows) total += Int128{u[row]} * u[column];
      sum.push_back(total);
    }
  return sum;
}

double weight(std::size_t row, std::size_t column) {
  return static_cast<double>((row * 2654435761U + column * 40503U) % (1U << 21)) - 0x1p20;
}

std::vector<Int128> slow_outer(const std::vector<LatticeRow>& rows, std::size_t d, std::size_t k) {
  std::vector<Int128> sum(d * k);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t c = 0; c < k; ++c)
      for (std::size_t j = 0; j < d; ++j)
        sum[c * d + j] += Int128{rows[i][j]} * static_cast<std::int64_t>(weight(i, c));
  return sum;
}

void fill_weights(const RowBlock& block, double* t) {
  for (std::size_t i = 0; i < block.rows; ++i)
    for (std::size_t c = 0; c < 3; ++c) t[i * 3 + c] = weight(block.first + i, c);
}

struct Case {
  RowsSetup setup;
  std::size_t rows;
  std::size_t columns;
};

class ExactSums : public ::testing::TestWithParam<Case> {};

TEST_P(ExactSums, EqualASlowBigIntegerReference) {
  const Case& c = GetParam();
  auto rows = random_rows(c.rows, c.columns, c.setup.bits, 11);
  const auto expected = slow_gram(rows, c.columns);
  EXPECT_EQ(*gram_sum(lattice_rows(rows, c.columns, c.setup)), expected);
  EXPECT_EQ(*outer_sum(lattice_rows(rows, c.columns, c.setup), 3, 0x1p20, fill_weights),
            slow_outer(rows, c.columns, 3));
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(12));
  EXPECT_EQ(*gram_sum(lattice_rows(rows, c.columns, c.setup)), expected);
}

INSTANTIATE_TEST_SUITE_P(ThreadsChunksAndSpilling, ExactSums,
                         ::testing::Values(Case{{.threads = 1}, 20000, 7}, Case{{.threads = 2}, 20000, 7},
                                           Case{{.threads = 5}, 20000, 7},
                                           Case{{.threads = 2, .chunk_rows = 1}, 500, 33},
                                           Case{{.threads = 5, .chunk_rows = 13}, 3000, 33},
                                           Case{{.threads = 2, .chunk_rows = 100, .memory_bytes = 0}, 3050, 33},
                                           Case{{.bits = 4, .threads = 2}, 3000, 5}, Case{{.threads = 2}, 1, 1},
                                           Case{{.threads = 3, .chunk_rows = 9000}, 20001, 3}));

// Equal maximal rows push every partial sum to the edge of what a double holds exactly.
TEST(ExactSums, StayExactWhenEveryRowIsMaximal) {
  const std::int32_t L = 1 << 20;
  const std::vector<LatticeRow> rows(40000, LatticeRow{L, 0});
  const auto odd = std::vector<LatticeRow>(40001, LatticeRow{L - 1, 3});
  for (const int threads : {1, 2}) {
    EXPECT_EQ((*gram_sum(lattice_rows(rows, 2, {.threads = threads})))[0], Int128{40000} * L * L);
    EXPECT_EQ(*gram_sum(lattice_rows(odd, 2, {.threads = threads})), slow_gram(odd, 2));
  }
}

TEST(ExactSums, CountsSeeEveryRowOnce) {
  const auto rows = random_rows(10007, 5, 20, 3);
  const auto bounded = lattice_rows(rows, 5, {.threads = 2, .chunk_rows = 64});
  const auto sum = count_sum(bounded, 2, BlockValues::kOmit, [](const RowBlock& block, std::vector<std::int64_t>& n) {
    n[0] += static_cast<std::int64_t>(block.rows);
    for (std::size_t i = 0; i < block.rows; ++i) n[1] += static_cast<std::int64_t>(block.first + i);
  });
  EXPECT_EQ((*sum)[0], 10007);
  EXPECT_EQ((*sum)[1], Int128{10007} * 10006 / 2);
}

}  // namespace
}  // namespace eigenveil
