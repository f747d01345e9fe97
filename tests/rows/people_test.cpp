// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/people.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "eigenveil/rows/kernels.hpp"
#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::lattice_rows;
using test::LatticeRow;

constexpr std::uint64_t kWhole = std::uint64_t{1} << 32;

struct Table {
  std::vector<LatticeRow> rows;
  std::vector<int> people;
};

Table random_table(std::mt19937_64& random, std::size_t people, std::size_t d, bool one_each = false) {
  std::vector<std::pair<LatticeRow, int>> all;
  for (std::size_t p = 0; p < people; ++p) {
    const std::size_t m = one_each ? 1 : 1 + random() % (p % 7 == 0 ? 50 : 4);
    for (std::size_t i = 0; i < m; ++i) {
      LatticeRow u(d);
      for (auto& x : u) x = static_cast<std::int32_t>(random() % 600) - 300;
      all.emplace_back(u, static_cast<int>(p));
    }
  }
  std::shuffle(all.begin(), all.end(), random);
  Table table;
  for (const auto& [u, p] : all) {
    table.rows.push_back(u);
    table.people.push_back(p);
  }
  return table;
}

// sum w u u^T by hand, w = floor(2^32 / max(M, m))
std::vector<Int128> dense(const Table& table, std::size_t d, std::size_t least) {
  std::map<int, std::uint64_t> m;
  for (const int p : table.people) ++m[p];
  std::vector<Int128> sum;
  for (std::size_t c = 0; c < d; ++c)
    for (std::size_t r = c; r < d; ++r) {
      Int128 entry = 0;
      for (std::size_t i = 0; i < table.rows.size(); ++i)
        entry += static_cast<Int128>(kWhole / std::max<std::uint64_t>(m[table.people[i]], least)) * table.rows[i][c] *
                 table.rows[i][r];
      sum.push_back(entry);
    }
  return sum;
}

TEST(People, WeighedSumsAreThoseByHandWhateverTheOrderTheThreadsAndTheMemory) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 30; ++trial) {
    const std::size_t d = 1 + random() % 6;
    Table table = random_table(random, 60, d);
    const std::size_t least = trial % 3 == 0 ? 5 : 1;
    const auto expected = dense(table, d, least);
    for (int again = 0; again < 4; ++again) {
      test::RowsSetup setup{.bits = 12, .threads = 1 + again, .chunk_rows = 3 + random() % 40, .people = table.people};
      if (again == 2) setup.memory_bytes = 4096;  // everything in files
      setup.rule.least_rows = least;
      const auto rows = lattice_rows(table.rows, d, setup);
      EXPECT_EQ(rows.units(), 60U);
      EXPECT_EQ(rows.rows(), table.rows.size());
      ASSERT_TRUE(*gram_sum(rows) == expected) << trial << " " << again;
      std::vector<std::size_t> order(table.rows.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      Table shuffled;
      for (const std::size_t i : order) {
        shuffled.rows.push_back(table.rows[i]);
        shuffled.people.push_back(table.people[i]);
      }
      table = shuffled;
    }
  }
}

TEST(People, WithOneRowEachRowsLieAsTheyCame) {
  std::mt19937_64 random(2);
  const Table table = random_table(random, 500, 3, true);
  const auto with = lattice_rows(table.rows, 3, {.bits = 12, .chunk_rows = 64, .people = table.people});
  const auto without = lattice_rows(table.rows, 3, {.bits = 12, .chunk_rows = 64});
  std::vector<std::int32_t> one, two;
  for (std::size_t chunk = 0; chunk < with.store().chunks(); ++chunk)
    EXPECT_TRUE(std::equal(*with.store().read(chunk, one),
                           *with.store().read(chunk, one) + 3 * with.store().rows_in(chunk),
                           *without.store().read(chunk, two)));
  auto weighed = *gram_sum(with);
  for (Int128& x : weighed) x /= static_cast<Int128>(kWhole);
  EXPECT_TRUE(weighed == *gram_sum(without));
  for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(with.person()[i], i) << "people have the numbers of their rows";
}

TEST(People, APersonNeverWeighsMoreThanOne) {
  for (const std::size_t least : {1, 2, 20, 1000})
    for (std::uint64_t m = 1; m < 3000; ++m) {
      ASSERT_LE(m * person_weight(m, least), kWhole);
      ASSERT_LE(m * count_weight(person_weight(m, least)), std::uint64_t{1} << 20);
      ASSERT_EQ(count_weight(person_weight(m, least)), (std::uint64_t{1} << 20) / std::max<std::uint64_t>(m, least));
      ASSERT_TRUE(m < least || m * person_weight(m, least) > kWhole - m) << "and hardly less";
    }
  for (const std::uint64_t m : {(1ULL << 20) + 1, 10'000'000ULL, (1ULL << 32) - 2, (1ULL << 32) - 1})
    EXPECT_LE(m * person_weight(m, 1), kWhole);
}

TEST(People, IdsAreCountedInAsManyPartsAsMemoryAsksFor) {
  std::mt19937_64 random(3);
  std::vector<PersonId> ids;
  std::vector<std::uint32_t> expected, rows_of;
  std::map<int, std::uint32_t> number;
  for (int i = 0; i < 60000; ++i) {
    const bool nobody = random() % 50 == 0;
    const int p = nobody ? -1 - i : static_cast<int>(random() % 20000);
    ids.push_back(nobody ? PersonId{} : person_of(std::to_string(p), {}));
    const auto [found, fresh] = number.try_emplace(p, static_cast<std::uint32_t>(number.size()));
    if (fresh) rows_of.push_back(0);
    ++rows_of[found->second];
    expected.push_back(found->second);
  }
  for (const std::size_t memory : {std::size_t{64} << 20, std::size_t{600} << 10}) {  // one part; several, and a file
    PersonIds all(memory, "");
    ASSERT_TRUE(all.append(ids.data(), ids.size()).ok());
    const auto people = *all.count(true);
    EXPECT_TRUE(people.person == expected);
    EXPECT_TRUE(people.rows_of == rows_of);
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_TRUE(people.ids[people.person[i]] == ids[i]);
  }
}

TEST(People, IdsAreTextsAndWholeNumbers) {
  EXPECT_NE(person_of("1", {}), person_of("01", {}));
  EXPECT_NE(person_of("1", {}), person_of("1", {1})) << "the key is part of it";
  EXPECT_EQ(*person_of(7.0, {3}), person_of("7", {3}));
  EXPECT_TRUE(person_of(std::nan(""), {})->missing());
  EXPECT_FALSE(person_of(7.5, {}).ok());
  EXPECT_FALSE(person_of(0x1p53, {}).ok());
  EXPECT_TRUE(person_of(0x1p53 - 1, {}).ok());
}

TEST(People, KeepsSoManyRowsOfEach) {
  std::mt19937_64 random(4);
  const Table table = random_table(random, 200, 2);
  std::map<int, std::uint32_t> m;
  for (const int p : table.people) ++m[p];
  test::RowsSetup setup{.bits = 12, .people = table.people};
  setup.rule.most_rows = 3;
  setup.rule.below = [&](std::uint64_t n) { return random() % n; };
  const auto rows = lattice_rows(table.rows, 2, setup);
  std::size_t kept = 0;
  for (const auto& [p, count] : m) kept += std::min(count, 3U);
  EXPECT_EQ(rows.rows(), kept);
  EXPECT_EQ(rows.units(), 200U);
  for (const std::uint32_t count : rows.rows_of()) EXPECT_LE(count, 3U);
  std::map<std::uint32_t, std::uint32_t> left;
  for (const std::uint32_t p : rows.person()) ++left[p];
  for (const auto& [p, count] : left) EXPECT_EQ(count, rows.rows_of()[p]);
}

TEST(People, ARowWithoutAnIdIsRefusedOrItsOwnPerson) {
  test::RowsSetup setup{.bits = 12, .people = {1, -1, 1, -1}};
  setup.rule.missing_is_own = true;
  const std::vector<LatticeRow> four = {{1}, {2}, {3}, {4}};
  EXPECT_EQ(lattice_rows(four, 1, setup).units(), 3U);
  RowMajorMatrix one(1, 1);
  one << 5;
  test::PeopledSource source(std::make_unique<MemorySource>(one), {-1});
  BoundingOptions options{.bound = *RowBound::of(10), .person = PersonRule{}};
  const auto refused = BoundedRows::read(source, ColumnMap::identity({"1"}), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("row 1: the person's id is missing"), std::string::npos);
}

TEST(People, RowsThatWereZeroStayZeroWhereverTheyMoved) {
  RowMajorMatrix values(5, 2);
  values << 1, 1, std::nan(""), 1, 2, 2, 3, 3, 4, 4;
  test::PeopledSource source(std::make_unique<MemorySource>(values), {1, 2, 1, 3, 1});
  BoundingOptions options{.bound = *RowBound::of(10), .missing = MissingPolicy::kZeroRow, .person = PersonRule{}};
  auto rows = *BoundedRows::read(source, ColumnMap::identity({"1", "2"}), options);
  ASSERT_TRUE(rows.recenter(Vector::Constant(2, 1.0), *RowBound::of(10)).ok());
  std::vector<std::int32_t> buffer;
  const std::int32_t* u = *rows.store().read(0, buffer);
  // people 2 and 3 have one row each and come first
  EXPECT_EQ(u[0], 0);
  EXPECT_EQ(u[1], 0);
  EXPECT_GT(u[2], 0);
}

}  // namespace
}  // namespace eigenveil
