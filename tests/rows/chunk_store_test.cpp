// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/chunk_store.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

std::vector<std::int32_t> all_rows(const ChunkStore& store) {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> buffer;
  for (std::size_t chunk = 0; chunk < store.chunks(); ++chunk) {
    const auto read = store.read(chunk, buffer);
    EXPECT_TRUE(read.ok());
    rows.insert(rows.end(), *read, *read + store.rows_in(chunk) * store.columns());
  }
  return rows;
}

class StoredRows : public ::testing::TestWithParam<std::size_t> {};

TEST_P(StoredRows, ComeBackInOrderFromMemoryAndFromTheFile) {
  test::TempDir folder;
  std::vector<std::int32_t> rows(997 * 3);
  std::iota(rows.begin(), rows.end(), -1000);
  ChunkStore store(3, {GetParam(), folder.path().string(), 10});
  for (std::size_t i = 0; i < 997;) {
    const std::size_t count = std::min<std::size_t>(1 + i % 37, 997 - i);
    ASSERT_TRUE(store.append(&rows[i * 3], count).ok());
    i += count;
  }
  EXPECT_EQ(store.spilled(), GetParam() < rows.size() * 4);
  EXPECT_EQ(all_rows(store), rows);

  for (std::size_t chunk = 0; chunk < store.chunks(); ++chunk) {
    const std::vector<std::int32_t> changed(store.rows_in(chunk) * 3, static_cast<std::int32_t>(chunk));
    ASSERT_TRUE(store.write(chunk, changed.data()).ok());
  }
  const auto changed = all_rows(store);
  for (std::size_t i = 0; i < changed.size(); ++i) ASSERT_EQ(changed[i], static_cast<std::int32_t>(i / 30));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the spill file must have no name";
}

INSTANTIATE_TEST_SUITE_P(MemoryLimits, StoredRows, ::testing::Values(0, 121, 600, 5000, 1 << 20));

// Whole chunks of one append go straight to the file; the last one stays in memory, even if it is whole.
TEST(ChunkStore, TheLastChunkCanBeReplacedHoweverTheRowsCame) {
  test::TempDir folder;
  std::vector<std::int32_t> rows(40);
  std::iota(rows.begin(), rows.end(), 0);
  ChunkStore store(1, {0, folder.path().string(), 10});
  ASSERT_TRUE(store.append(rows.data(), 11).ok());
  ASSERT_TRUE(store.append(rows.data() + 11, 29).ok());
  EXPECT_EQ(all_rows(store), rows);
  for (std::size_t i = 30; i < 40; ++i) rows[i] = -1;
  ASSERT_TRUE(store.write(3, rows.data() + 30).ok());
  EXPECT_EQ(all_rows(store), rows);
}

TEST(ChunkStore, SaysWhereItCouldNotSpill) {
  ChunkStore store(1, {0, "/nonexistent/folder", 1});
  const std::int32_t row = 1;
  ASSERT_TRUE(store.append(&row, 1).ok());
  const Status second = store.append(&row, 1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kInternal);
  EXPECT_NE(second.error().message.find("/nonexistent/folder"), std::string::npos);
}

}  // namespace
}  // namespace eigenveil
