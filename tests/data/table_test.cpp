// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/table.hpp"

#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kText = "a,b,c\n1,x,3\n4,y,6\n";
const SourceOptions kNamed{.header = HeaderRule::kYes};

std::vector<double> all_of(RowSource& source) {
  RawBatch batch;
  EXPECT_TRUE(source.next(batch, 100).ok());
  return batch.values;
}

TEST(Table, KnowsItsColumnsBeforeTheyAreChosen) {
  const TempDir dir;
  auto table = eigenveil::Table::open(dir.write_file("t.csv", kText), kNamed);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_THAT(*table->column_names({}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*table->column_names({"c", "1-2"}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(table->column_names({"d"}).error().message, HasSubstr("no column 'd'"));
  SourceOptions chosen = kNamed;
  chosen.columns = {"c", "b"};
  chosen.categories = {{"b", {"y", "x"}}};
  const auto rows = table->take(chosen);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_THAT((*rows)->columns(), ElementsAre("c", "b"));
  EXPECT_THAT(all_of(**rows), ElementsAre(3, 1, 6, 0));
}

TEST(Table, GivesItsRowsOnce) {
  const TempDir dir;
  auto table = eigenveil::Table::open(dir.write_file("t.csv", kText), kNamed);
  ASSERT_TRUE(table.ok());
  SourceOptions wrong = kNamed;
  wrong.columns = {"d"};
  EXPECT_FALSE(table->take(wrong).ok());
  SourceOptions right = kNamed;
  right.columns = {"a"};
  EXPECT_TRUE(table->take(right).ok()) << "a wrong choice costs nothing";
  EXPECT_THAT(table->take(right).error().message, HasSubstr("taken already"));
}

TEST(Table, OfAFolderChoosesAlikeInEveryPartAndEveryShare) {
  const TempDir dir;
  for (const char* name : {"1.csv", "2.csv", "3.csv"}) dir.write_file(name, kText);
  SourceOptions chosen = kNamed;
  chosen.columns = {"c"};
  for (const std::size_t index : {0U, 1U}) {
    chosen.share = {index, 2};
    auto table = eigenveil::Table::open(dir.path().string(), chosen);
    ASSERT_TRUE(table.ok()) << table.error().message;
    EXPECT_THAT(*table->column_names({}), ElementsAre("a", "b", "c"));
    const auto rows = table->take(chosen);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    EXPECT_THAT(all_of(**rows), ElementsAre(3, 6));
    EXPECT_EQ(all_of(**rows).size(), index == 0 ? 2U : 0U);
  }
}

}  // namespace
}  // namespace eigenveil::test
