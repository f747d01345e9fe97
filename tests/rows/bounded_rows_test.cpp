// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/bounded_rows.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "eigenveil/data/memory_source.hpp"

namespace eigenveil {
namespace {

Result<BoundedRows> read(double value, BoundingOptions options) {
  RowMajorMatrix raw(1, 2);
  raw << 1, value;
  MemorySource source(raw);
  options.class_column = 1;
  return BoundedRows::read(source, ColumnMap::identity({"1"}), options);
}

// Whatever a source says, a class is one of those that there are or none: no number is cast that no integer holds.
TEST(ClassesOfRows, AreWholeNumbersThatFitOrNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::size_t classes : {0U, 3U}) {
    BoundingOptions options{.bound = *RowBound::of(2)};
    options.classes = classes;
    for (const double good : {0.0, 2.0}) EXPECT_EQ(read(good, options)->classes().at(0), good);
    for (const double bad : {-1.0, -0.5, 0.5, 1e10, 0x1p31, 1e300, -1e300, kInfinity, -kInfinity}) {
      options.drop_unlisted = false;
      const auto refused = read(bad, options);
      ASSERT_FALSE(refused.ok()) << bad;
      EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
      options.drop_unlisted = true;
      const auto dropped = read(bad, options);
      ASSERT_TRUE(dropped.ok()) << bad;
      EXPECT_EQ(dropped->classes().at(0), -1) << bad;
      std::vector<std::int32_t> buffer;
      EXPECT_EQ(**dropped->store().read(0, buffer), 0) << bad;
    }
  }
}

// A file for every row; behind them the source fails, if it is told to.
class Files final : public RowSource {
 public:
  Files(std::vector<double> rows, bool fails) : rows_(std::move(rows)), fails_(fails) {}
  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }
  std::string part() const override { return at_ == 0 ? "" : "file " + std::to_string(at_); }
  Status next(RawBatch& batch, std::size_t /*max_rows*/) override {
    batch = {};
    if (at_ == rows_.size()) return fails_ ? Status(bad_input("the last file is damaged")) : Status();
    batch.rows = 1;
    batch.values = {rows_[at_++]};
    return {};
  }

 private:
  std::vector<std::string> names_ = {"x"};
  std::vector<double> rows_;
  bool fails_;
  std::size_t at_ = 0;
};

Result<BoundedRows> read_files(std::vector<double> rows, bool fails, int threads = 1) {
  Files source(std::move(rows), fails);
  BoundingOptions options{.bound = *RowBound::of(1e6)};
  options.bits = 20;
  options.threads = threads;
  return BoundedRows::read(source, ColumnMap::identity({"x"}), options);
}

// The next batch is read while one is bounded: neither its file nor what is wrong with it comes first.
TEST(ReadingAhead, WhatIsWrongWithTheEarlierRowIsSaid) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const auto& rows : {std::vector<double>{1, kNone, 3}, {1, kNone}}) {
    const auto refused = read_files(rows, true);
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(refused.error().message.starts_with("file 2, row 1, column 'x': the value is missing"))
        << refused.error().message;
  }
  const auto damaged = read_files({1, 2}, true);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().message, "the last file is damaged");
}

TEST(ReadingAhead, EveryRowIsThereOnceAndInOrder) {
  std::vector<double> rows(500);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<double>(i);
  for (const int threads : {1, 3}) {
    const auto read = read_files(rows, false, threads);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->rows(), rows.size());
    std::vector<std::int32_t> buffer;
    const std::int32_t* u = *read->store().read(0, buffer);
    for (std::size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(u[i], static_cast<std::int32_t>(rows[i] / 1e6 * 0x1p20)) << i;
  }
}

}  // namespace
}  // namespace eigenveil
