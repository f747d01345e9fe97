// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/given_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eigenveil/data/memory_source.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

GivenRows small_table() {
  RowMajorMatrix rows(2, 3);
  rows << 1, 10, 5, 2, 20, 6;
  return GivenRows(std::make_unique<MemorySource>(rows, std::vector<std::string>{"a", "b", "c"}));
}

TEST(GivenRows, ColumnsAreChosenByNamePositionAndRange) {
  auto given = small_table();
  EXPECT_EQ(*given.column_names({"c", "1-2"}), (std::vector<std::string>{"c", "a", "b"}));
  auto source = given.take({.columns = {"c", "1"}});
  ASSERT_TRUE(source.ok()) << source.error().message;
  RawBatch batch;
  ASSERT_TRUE((*source)->next(batch, 10).ok());
  EXPECT_EQ(batch.values, (std::vector<double>{5, 1, 6, 2}));
  ASSERT_TRUE((*source)->next(batch, 10).ok());
  EXPECT_EQ(batch.rows, 0U);
}

TEST(GivenRows, ASecondTakeIsRefused) {
  auto given = small_table();
  ASSERT_TRUE(given.take({}).ok());
  EXPECT_THAT(given.take({}).error().message, HasSubstr("read once"));
}

TEST(GivenRows, CategoriesBecomeTheirPlaceInTheList) {
  auto given = small_table();
  auto source = given.take({.columns = {"b"}, .categories = {{"b", {"20", "10"}}}});
  RawBatch batch;
  ASSERT_TRUE((*source)->next(batch, 10).ok());
  EXPECT_EQ(batch.values, (std::vector<double>{1, 0}));
}

TEST(GivenRows, AnUnlistedCategoryIsAnErrorOrMissing) {
  auto strict = small_table();
  RawBatch batch;
  const auto refused = (*strict.take({.categories = {{"b", {"10"}}}}))->next(batch, 10);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("rows in memory: row 2, column 'b'"));
  auto lenient = small_table();
  const auto source = lenient.take({.categories = {{"b", {"10"}}}, .bad_rows = BadRows::kMissing});
  ASSERT_TRUE((*source)->next(batch, 10).ok());
  EXPECT_TRUE(std::isnan(batch.values[4]));
}

/// Says it has two columns, and gives whatever it likes.
class Liar final : public RowSource {
 public:
  Liar(std::size_t rows, std::size_t numbers) : rows_(rows), numbers_(numbers) {}
  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t) override {
    batch.rows = rows_;
    batch.values.assign(numbers_, 1.0);
    return {};
  }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }

 private:
  std::vector<std::string> names_ = {"1", "2"};
  std::size_t rows_, numbers_;
};

TEST(GivenRows, ASourceThatLiesAboutItsSizeIsRefused) {
  for (const auto& [rows, numbers] : {std::pair{2U, 3U}, {3U, 2U}, {11U, 22U}}) {
    GivenRows given(std::make_unique<Liar>(rows, numbers));
    RawBatch batch;
    EXPECT_FALSE((*given.take({}))->next(batch, 10).ok()) << rows << ' ' << numbers;
  }
}

/// Has four columns when it is given, and two of them from then on.
class Shrinking final : public RowSource {
 public:
  const std::vector<std::string>& columns() const override { return asked_++ == 0 ? four_ : two_; }
  Status next(RawBatch& batch, std::size_t) override {
    batch.rows = 2;
    batch.values = {1, 2, 3, 4};
    return {};
  }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }

 private:
  std::vector<std::string> four_ = {"1", "2", "3", "4"}, two_ = {"1", "2"};
  mutable int asked_ = 0;
};

// The fourth column of the first row would otherwise be the second one of the next row: one row in two.
TEST(GivenRows, ASourceThatLosesColumnsLendsNoRowToAnother) {
  GivenRows given(std::make_unique<Shrinking>());
  const auto source = given.take({.columns = {"4"}});
  ASSERT_TRUE(source.ok()) << source.error().message;
  RawBatch batch;
  EXPECT_FALSE((*source)->next(batch, 10).ok());
}

}  // namespace
}  // namespace eigenveil
