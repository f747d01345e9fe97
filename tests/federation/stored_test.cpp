// SPDX-License-Identifier: Apache-2.0
// A log of answers after crashes: all that was written, or all but the last record; never anything else.
#include "eigenveil/federation/stored.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "eigenveil/wire/convert.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::federation {
namespace {

struct Record {
  std::string label;
  std::vector<Int128> values;
  bool narrow = false;
};

const std::vector<Record>& records() {
  static const std::vector<Record> all = {{"first", {1, -2, Int128{3} << 100}},
                                          {"nothing", {}},
                                          {"narrow", {5, -6, INT64_MIN}, true},
                                          {"last", {-7, 0, 0, 0, 9}}};
  return all;
}

void write(AnswerLog& log, const Record& record) {
  wire::v2::Ask ask;
  ask.set_label(record.label);
  wire::v2::Answer answer;
  answer.set_entries(record.values.size());
  answer.set_narrow(record.narrow);
  ASSERT_TRUE(log.append(ask, answer, record.values).ok());
}

std::vector<Int128> values_of(const Stored& stored) {
  std::vector<Int128> values(stored.answer.entries());
  EXPECT_TRUE(for_each_part(stored, [&](const std::string& bytes) -> Status {
                add_integers(bytes, stored.answer.narrow(), values.data());
                return {};
              }).ok());
  return values;
}

void expect_records(const AnswerLog& log, std::size_t count) {
  ASSERT_EQ(log.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto stored = log.read(i);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(stored->ask.label(), records()[i].label);
    EXPECT_EQ(values_of(*stored), records()[i].values);
  }
}

class StoredTest : public ::testing::Test {
 protected:
  StoredTest() {
    auto log = AnswerLog::open(path_);
    for (const Record& record : records()) {
      write(*log, record);
      ends_.push_back(std::filesystem::file_size(path_));
    }
    EXPECT_TRUE(log->sync().ok());
    expect_records(*log, records().size());
    std::ifstream in(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  Result<AnswerLog> open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return AnswerLog::open(path_);
  }
  test::TempDir folder_;
  std::string path_ = folder_.file("log.bin");
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

TEST_F(StoredTest, EveryCutLeavesTheRecordsBeforeItAndRoomForMore) {
  for (std::size_t size = 0; size <= bytes_.size(); ++size) {
    std::size_t whole = 0;
    while (whole < ends_.size() && ends_[whole] <= size) ++whole;
    auto log = open(bytes_.substr(0, size));
    ASSERT_TRUE(log.ok()) << size << ": " << log.error().message;
    expect_records(*log, whole);
    for (std::size_t i = whole; i < records().size(); ++i) write(*log, records()[i]);
    expect_records(*log, records().size());
    EXPECT_EQ(std::filesystem::file_size(path_), bytes_.size());
  }
}

TEST_F(StoredTest, SpaceThatWasNeverFilledIsDropped) {
  const auto log = open(bytes_ + std::string(5000, '\0'));
  ASSERT_TRUE(log.ok()) << log.error().message;
  expect_records(*log, records().size());
}

TEST_F(StoredTest, EveryChangedBitIsFound) {
  for (std::size_t i = 0; i < 8 * bytes_.size(); ++i) {
    std::string changed = bytes_;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    const auto log = open(changed);
    ASSERT_FALSE(log.ok()) << i;
    EXPECT_THAT(log.error().message, ::testing::HasSubstr("damaged"));
  }
}

TEST_F(StoredTest, OneProcessAtATime) {
  const auto log = AnswerLog::open(path_);
  ASSERT_TRUE(log.ok());
  const auto second = AnswerLog::open(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, ::testing::HasSubstr("another process"));
}

}  // namespace
}  // namespace eigenveil::federation
