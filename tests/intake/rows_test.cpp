// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "eigenveil/data/memory_source.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

std::vector<PersonId> people_of(const RowOptions& options) {
  auto opened = open_data(options);
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  RawBatch batch;
  EXPECT_TRUE(opened->source->next(batch, 10).ok());
  EXPECT_EQ(batch.people.size(), batch.rows);
  return batch.people;
}

// Whoever knew the key could choose two ids that collide.
template <class MakeOptions>
void expect_fresh_keys(const MakeOptions& options) {
  std::set<std::uint64_t> seen;
  for (int run = 0; run < 4; ++run) {
    const auto people = people_of(options());
    ASSERT_EQ(people.size(), 3U);
    EXPECT_EQ(people[0], people[2]);
    EXPECT_NE(people[0], people[1]);
    EXPECT_NE(people[0], person_of("p", {})) << "a key of zeros";
    seen.insert(people[0].high);
  }
  EXPECT_EQ(seen.size(), 4U) << "a key for each run";
}

TEST(PeopleOfRows, AreHashedWithAKeyOfEachRun) {
  const test::TempDir dir;
  RowOptions rows;
  rows.data = dir.write_file("t.csv", "who,a\np,1\nq,2\np,3\n");
  rows.source.header = HeaderRule::kYes;
  rows.ranges = {"0:5"};
  rows.person = PersonOptions{"who"};
  expect_fresh_keys([&] { return rows; });
}

TEST(PeopleOfPairs, AreHashedWithAKeyOfEachRun) {
  const test::TempDir dir;
  const std::string list = dir.write_file("who.txt", "p\nq\np\n");
  const auto given = [] {
    return std::make_shared<GivenRows>(std::make_unique<MemorySource>(RowMajorMatrix::Ones(3, 2)));
  };
  expect_fresh_keys([&] {
    RowOptions rows;
    rows.pairs = PairReading{.files = {}, .given_x = given(), .given_y = given()};
    rows.pairs->files.person = list;
    rows.person = PersonOptions{"who"};
    return rows;
  });
}

TEST(PersonOptions, ThatNobodyCouldHaveMeantAreRefused) {
  constexpr std::size_t kMost = std::size_t{1} << 31;
  EXPECT_TRUE(check(PersonOptions{"who", kMost, kMost - 1}).ok());
  for (const PersonOptions& wrong :
       {PersonOptions{"who", 0}, PersonOptions{"who", kMost + 1}, PersonOptions{"who", std::size_t{0} - 5},
        PersonOptions{"who", 1, 0}, PersonOptions{"who", 1, kMost}, PersonOptions{"who", 1, std::size_t{0} - 5}})
    EXPECT_FALSE(check(wrong).ok());
}

}  // namespace
}  // namespace eigenveil
