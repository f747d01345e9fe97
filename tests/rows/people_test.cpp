// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/people.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
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

std::uint32_t cell_of(std::int32_t x) { return static_cast<std::uint32_t>(x + 300) % 3; }

// Column sums of the rows of each of three cells, and what these rows count, by hand and by kernels.
struct InCells {
  std::vector<Int128> sums;
  std::vector<std::int64_t> counts;
  bool operator==(const InCells&) const = default;
};

InCells dense_cells(const Table& table, std::size_t d, std::size_t least) {
  std::map<int, std::uint64_t> m;
  for (const int p : table.people) ++m[p];
  InCells cells{std::vector<Int128>(3 * d), std::vector<std::int64_t>(3)};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::uint64_t shared_by = std::max<std::uint64_t>(m[table.people[i]], least);
    const std::size_t cell = cell_of(table.rows[i][0]);
    cells.counts[cell] += static_cast<std::int64_t>((std::uint64_t{1} << 20) / shared_by);
    for (std::size_t c = 0; c < d; ++c)
      cells.sums[cell * d + c] += static_cast<Int128>(kWhole / shared_by) * table.rows[i][c];
  }
  return cells;
}

InCells cells_of(const BoundedRows& rows) {
  auto cells = *cell_sum(rows, 1, 3, 1.0, [](const RowBlock& block, double* t, std::uint32_t* cell) {
    for (std::size_t i = 0; i < block.rows; ++i) {
      t[i] = 1;
      cell[i] = cell_of(block.lattice[i * block.columns]);
    }
  });
  return {std::move(cells.sums), std::move(cells.counts)};
}

// All cells together, as plain sums and counts.
InCells plain_of(const BoundedRows& rows) {
  auto sums = *outer_sum(rows, 1, 1.0, [](const RowBlock& block, double* t) { std::fill_n(t, block.rows, 1.0); });
  const auto counts = *count_sum(
      rows, 1, BlockValues::kOmit,
      [](const RowBlock& block, std::vector<std::int64_t>& n) { n[0] += static_cast<std::int64_t>(block.rows); },
      CountUnit::kCountWeight);
  return {std::move(sums), {static_cast<std::int64_t>(counts[0])}};
}

InCells together(const InCells& cells, std::size_t d) {
  InCells all{std::vector<Int128>(d), {cells.counts[0] + cells.counts[1] + cells.counts[2]}};
  for (std::size_t i = 0; i < cells.sums.size(); ++i) all.sums[i % d] += cells.sums[i];
  return all;
}

TEST(People, WeighedSumsAreThoseByHandWhateverTheOrderTheThreadsAndTheMemory) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 30; ++trial) {
    const std::size_t d = 1 + random() % 6;
    Table table = random_table(random, 60, d);
    const std::size_t least = trial % 3 == 0 ? 5 : 1;
    const auto expected = dense(table, d, least);
    const auto in_cells = dense_cells(table, d, least);
    for (int again = 0; again < 4; ++again) {
      test::RowsSetup setup{.bits = 12, .threads = 1 + again, .chunk_rows = 3 + random() % 40, .people = table.people};
      if (again == 2) setup.memory_bytes = 4096;  // everything in files
      setup.rule.least_rows = least;
      setup.rule.numbered = again % 2 == 0;
      const auto rows = lattice_rows(table.rows, d, setup);
      EXPECT_EQ(rows.units(), 60U);
      EXPECT_EQ(rows.rows(), table.rows.size());
      ASSERT_TRUE(*gram_sum(rows) == expected) << trial << " " << again;
      ASSERT_TRUE(cells_of(rows) == in_cells) << trial << " " << again;
      ASSERT_TRUE(plain_of(rows) == together(in_cells, d)) << trial << " " << again;
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
  // One part; several; several, and a file.
  for (const std::size_t memory : {std::size_t{64} << 20, std::size_t{900} << 10, std::size_t{500} << 10}) {
    PersonIds all(memory, "");
    ASSERT_TRUE(all.append(ids.data(), ids.size()).ok());
    const auto people = *all.count(true);
    EXPECT_TRUE(people.person == expected);
    EXPECT_TRUE(people.rows_of == rows_of);
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_TRUE(people.ids[people.person[i]] == ids[i]);
    for (const int threads : {1, 2, 3, 8}) {
      const auto counts = *all.count_rows(threads);
      EXPECT_EQ(counts.people, rows_of.size());
      EXPECT_FALSE(counts.one_row_each);
      EXPECT_EQ(counts.rows_with.spilled(), memory < (std::size_t{600} << 10));
      std::vector<std::int32_t> buffer;
      for (std::size_t chunk = 0, i = 0; chunk < counts.rows_with.chunks(); ++chunk) {
        const std::int32_t* m = *counts.rows_with.read(chunk, buffer);
        for (std::size_t j = 0; j < counts.rows_with.rows_in(chunk); ++j, ++i)
          ASSERT_EQ(m[j], static_cast<std::int32_t>(rows_of[expected[i]])) << threads;
      }
    }
  }
}

// All 128 bits say who somebody is: half of them would collide among some billions.
TEST(People, WhoShareHalfAHashAreTwo) {
  const std::vector<PersonId> ids = {{1 << 20, 7}, {1 << 20, 8}, {2 << 20, 7}, {1 << 20, 7}, {0, 7}, {1 << 20, 0}};
  PersonIds all(std::size_t{1} << 20, "");
  ASSERT_TRUE(all.append(ids.data(), ids.size()).ok());
  EXPECT_EQ(all.count()->rows_of, (std::vector<std::uint32_t>{2, 1, 1, 1, 1}));
  for (const int threads : {1, 2, 4}) EXPECT_EQ(all.count_rows(threads)->people, 5U) << threads;
}

// The table is as large as a sketch of the ids says: where it is taken in, they are counted again in a larger one.
TEST(People, AreCountedHoweverFewASketchSees) {
  std::vector<PersonId> ids;
  for (std::uint64_t i = 1; i <= 5000; ++i) ids.insert(ids.end(), {{7, i}, {7, i}});  // one hash to the sketch
  PersonIds all(std::size_t{64} << 20, "");
  ASSERT_TRUE(all.append(ids.data(), ids.size()).ok());
  EXPECT_EQ(all.count()->rows_of, std::vector<std::uint32_t>(5000, 2));
  EXPECT_EQ(all.count_rows(1)->people, 5000U);
}

// Whatever were quadratic in a person's rows would not end; more than 2^20 rows weigh nothing in counts.
TEST(People, MayHaveMillionsOfRows) {
  constexpr std::uint32_t kRows = 3'000'000;
  std::vector<PersonId> ids(kRows, person_of("p", {}));
  ids[kRows / 2] = person_of("q", {});
  for (const std::size_t memory : {std::size_t{1} << 30, std::size_t{6} << 20}) {
    PersonIds all(memory, "");
    ASSERT_TRUE(all.append(ids.data(), ids.size()).ok());
    EXPECT_EQ(all.count()->rows_of, (std::vector<std::uint32_t>{kRows - 1, 1}));
    const auto counts = *all.count_rows(2);
    EXPECT_EQ(counts.people, 2U);
    std::vector<std::int32_t> buffer;
    EXPECT_EQ((*counts.rows_with.read(0, buffer))[0], static_cast<std::int32_t>(kRows - 1));
  }
  constexpr std::uint64_t kMany = (1 << 20) + 1;
  std::vector<int> people(kMany, 1);
  people.push_back(2);
  const auto rows = lattice_rows(std::vector<LatticeRow>(kMany + 1, {300}), 1, {.bits = 12, .people = people});
  EXPECT_EQ(rows.units(), 2U);
  EXPECT_TRUE(gram_sum(rows)->at(0) == static_cast<Int128>(kMany * (kWhole / kMany) + kWhole) * 90000);
  EXPECT_EQ(plain_of(rows).counts[0], 1 << 20);
}

// SipHash-2-4-128 as OpenSSL computes it: nothing of the hash is left out, none of the key, no byte of the text.
TEST(People, WithLongIdsAreHashedByAll128Bits) {
  PersonColumn::Key key;
  std::string text;
  for (unsigned char i = 0; i < 16; ++i) key[i] = i;
  const auto hex = [&] {
    const PersonId id = person_of(text, key);
    unsigned char bytes[16];
    std::memcpy(bytes, &id.high, 8);
    std::memcpy(bytes + 8, &id.low, 8);
    return fmt::format("{:02x}", fmt::join(bytes, ""));
  };
  for (char i = 0; i < 16; ++i) text.push_back(i);
  EXPECT_EQ(hex(), "6ee2a4ca67b054bbfd3315bf85230577");
  text.push_back(16);
  EXPECT_EQ(hex(), "473d06e8738db89854c066c47ae47740");
}

// Up to 15 bytes the id can be read off the number again: that no two are one needs no probability.
TEST(People, WithShortIdsAreThePermutedBytesOfTheirIds) {
  const auto product = [](std::uint64_t a, std::uint64_t b) {
    const UInt128 all = static_cast<UInt128>(a) * b;
    return static_cast<std::uint64_t>(all >> 64) ^ static_cast<std::uint64_t>(all);
  };
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 2000; ++trial) {
    PersonColumn::Key key;
    for (auto& byte : key) byte = static_cast<unsigned char>(trial % 4 == 0 ? 0 : random());
    std::string text(random() % 16, '\0');
    for (char& c : text) c = static_cast<char>(random() % (trial % 2 == 0 ? 2 : 256));
    std::uint64_t own[2];
    std::memcpy(own, key.data(), sizeof(own));
    PersonId id = person_of(text, key);
    EXPECT_FALSE(id.missing());
    id.high ^= product(id.low ^ own[0], 0xd6e8feb86659fd93);
    id.low ^= product(id.high ^ own[1], 0xc2b2ae3d27d4eb4f);
    id.high ^= product(id.low ^ own[0], 0x9e3779b97f4a7c15);
    char bytes[16];
    std::memcpy(bytes, &id.low, 8);
    std::memcpy(bytes + 8, &id.high, 8);
    ASSERT_EQ(std::string(bytes, text.size()), text);
    ASSERT_EQ(static_cast<std::size_t>(bytes[15]), text.size() + 1);
  }
}

// Ids that are counted up, as most are, lie anywhere: whoever looks at some of the bits sees half of them set.
TEST(People, WithIdsThatFollowEachOtherAreFarApart) {
  const PersonColumn::Key key = {5, 1, 4};
  constexpr int kIds = 1 << 14;
  std::vector<int> set(128), in_part(64);
  for (int i = 0; i < kIds; ++i) {
    const PersonId id = person_of(fmt::format("P{:07}", i), key);
    for (int bit = 0; bit < 64; ++bit) {
      set[static_cast<std::size_t>(bit)] += static_cast<int>(id.high >> bit & 1);
      set[static_cast<std::size_t>(64 + bit)] += static_cast<int>(id.low >> bit & 1);
    }
    ++in_part[id.low % 64];
  }
  for (const int count : set) EXPECT_NEAR(count, kIds / 2, 7 * 64) << "seven deviations";
  for (const int count : in_part) EXPECT_NEAR(count, kIds / 64, 7 * 16);
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

TEST(People, WeighWhatAllProcessesTogetherHaveOfThem) {
  const std::vector<LatticeRow> rows = {{300}, {200}, {100}, {50}};
  test::RowsSetup setup{.bits = 12, .people = {1, 2, 1, -1}};
  setup.rule.missing_is_own = true;
  // Elsewhere there are three rows more of the first person, and somebody else counts them.
  setup.rule.share = [](const std::vector<PersonId>& people,
                        const std::vector<std::uint32_t>& rows_here) -> Result<PersonRule::Shared> {
    EXPECT_EQ(people.size(), 3U);
    EXPECT_TRUE(people[2].missing());
    EXPECT_EQ(rows_here, (std::vector<std::uint32_t>{2, 1, 1}));
    return PersonRule::Shared{2, {5, 1, 1}, rows_here};
  };
  const auto shared = lattice_rows(rows, 1, setup);
  EXPECT_EQ(shared.units(), 2U);
  const Int128 fifth = kWhole / 5;
  EXPECT_TRUE(gram_sum(shared)->at(0) == fifth * (300 * 300 + 100 * 100) + Int128{kWhole} * (200 * 200 + 50 * 50));
}

// Each process keeping so many of a person's rows, they would weigh as much as there are processes.
TEST(People, KeepInOneProcessWhatAllOfThemAgreedUpon) {
  test::RowsSetup setup{.bits = 12, .people = {1, 2, 1, 1, 3}};
  setup.rule.most_rows = 2;
  setup.rule.below = [](std::uint64_t) { return 0; };
  // Of four rows of the first person, one of them elsewhere, one here is kept; the second has too many as well, and
  // none of those that are kept is here.
  setup.rule.share = [](const std::vector<PersonId>&,
                        const std::vector<std::uint32_t>& rows_here) -> Result<PersonRule::Shared> {
    EXPECT_EQ(rows_here, (std::vector<std::uint32_t>{3, 1, 1}));
    return PersonRule::Shared{3, {4, 3, 1}, {1, 0, 1}};
  };
  const auto rows = lattice_rows({{300}, {200}, {100}, {50}, {30}}, 1, setup);
  EXPECT_EQ(rows.rows(), 2U);
  EXPECT_EQ(rows.units(), 3U);
  EXPECT_TRUE(gram_sum(rows)->at(0) == Int128{kWhole / 2} * 300 * 300 + Int128{kWhole} * 30 * 30);
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

// A row of every five has no value, whoever moves it where: it stays zero when what zero means is moved.
TEST(People, RowsThatWereZeroStayZeroWhereverTheyMoved) {
  constexpr Eigen::Index kRows = 1000;
  RowMajorMatrix values = RowMajorMatrix::Constant(kRows, 2, 3);
  std::vector<int> people;
  for (Eigen::Index i = 0; i < kRows; ++i) {
    if (i % 5 == 2) values(i, 1) = std::nan("");
    people.push_back(static_cast<int>(i * i % 331));
  }
  for (const int threads : {1, 2, 5}) {
    test::PeopledSource source(std::make_unique<MemorySource>(values), people);
    BoundingOptions options{.bound = *RowBound::of(10),
                            .missing = MissingPolicy::kZeroRow,
                            .chunk_rows = 7,
                            .person = PersonRule{},
                            .threads = threads};
    auto rows = *BoundedRows::read(source, ColumnMap::identity({"1", "2"}), options);
    ASSERT_GT(rows.runs().size(), 2U);
    EXPECT_EQ(rows.diagnostics().zeroed, 200U);
    ASSERT_TRUE(rows.recenter(Vector::Constant(2, 1.0), *RowBound::of(10)).ok());
    std::size_t zero = 0;
    std::vector<std::int32_t> buffer;
    for (std::size_t chunk = 0; chunk < rows.store().chunks(); ++chunk) {
      const std::int32_t* u = *rows.store().read(chunk, buffer);
      for (std::size_t i = 0; i < rows.store().rows_in(chunk); ++i) {
        zero += u[2 * i] == 0 && u[2 * i + 1] == 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(zero, 200U) << threads;
  }
}

}  // namespace
}  // namespace eigenveil
