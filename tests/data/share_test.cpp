// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "eigenveil/data/sliced_source.hpp"
#include "tests/data/hdf5_file.hpp"
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> numbered(std::size_t rows) {
  std::vector<double> values;
  for (std::size_t i = 0; i < rows; ++i) {
    values.push_back(static_cast<double>(i));
    values.push_back(static_cast<double>(i % 7));
  }
  return values;
}

std::string as_csv(std::size_t rows, const std::string& end = "\n") {
  std::string text = "a,b" + end;
  for (std::size_t i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(i % 7) + end;
  return text;
}

std::string shape_of(std::size_t rows) { return "(" + std::to_string(rows) + ", 2)"; }

/// First column of what is left of a source; batches must know their place in the file.
std::vector<double> rest_of(RowSource& source, bool numbered_as_in_file = true, std::size_t max_rows = 37) {
  std::vector<double> found;
  RawBatch batch;
  while (true) {
    const Status status = source.next(batch, max_rows);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    if (!status.ok() || batch.rows == 0) break;
    for (std::size_t i = 0; i < batch.rows; ++i) found.push_back(batch.values[2 * i]);
    if (numbered_as_in_file) {
      EXPECT_EQ(batch.values[0], static_cast<double>(batch.first_row));
    }
  }
  EXPECT_EQ(source.progress(), 1.0);
  return found;
}

struct Shared {
  std::vector<double> rows;  ///< of all shares, sorted
  std::vector<std::size_t> sizes;
};

Shared read_shares(const std::string& path, std::size_t count, bool cut_text = false,
                   HeaderRule header = HeaderRule::kYes) {
  Shared all;
  for (std::size_t index = 0; index < count; ++index) {
    SourceOptions options{.header = header};
    options.share = {index, count, cut_text};
    const auto source = open_source(path, options);
    EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.error().message);
    if (!source.ok()) return all;
    const auto rows = rest_of(**source, !cut_text);
    EXPECT_EQ((*source)->rows_announced().value_or(rows.size()), rows.size());
    all.sizes.push_back(rows.size());
    all.rows.insert(all.rows.end(), rows.begin(), rows.end());
  }
  std::sort(all.rows.begin(), all.rows.end());
  return all;
}

std::vector<double> all_of(std::size_t rows) {
  std::vector<double> values(rows);
  for (std::size_t i = 0; i < rows; ++i) values[i] = static_cast<double>(i);
  return values;
}

class ShareTest : public testing::Test {
 protected:
  std::vector<std::string> every_format(std::size_t rows) const {
    const std::vector<double> values = numbered(rows);
    std::vector<double> by_column(values.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < 2; ++j) by_column[j * rows + i] = values[2 * i + j];
    const std::string array = npy("<f8", shape_of(rows), bytes_of(values));
    std::string idx("\0\0\x0e\2", 4);
    idx += bytes_of(std::vector<std::uint32_t>{static_cast<std::uint32_t>(rows), 2}, true) + bytes_of(values, true);
    return {dir_.write_file("t.npy", array),
            dir_.write_file("t.npy.gz", gzip(array)),
            dir_.write_file("f.npy", npy("<f8", shape_of(rows), bytes_of(by_column), true)),
            dir_.write_file("t.idx", idx),
            dir_.write_file("t.csv", as_csv(rows)),
            dir_.write_file("t.csv.gz", gzip(as_csv(rows))),
            write_hdf5(dir_.file("t.h5"), 2, values)};
  }
  std::string folder(const std::vector<std::pair<std::string, std::string>>& files) const {
    const std::string path = dir_.file("parts");
    std::filesystem::create_directory(path);
    for (const auto& [name, text] : files) dir_.write_file("parts/" + name, text);
    return path;
  }
  TempDir dir_;
};

TEST_F(ShareTest, SkippingGoesOnAtTheRightRow) {
  for (const std::string& path : every_format(3000)) {
    SCOPED_TRACE(path);
    for (const std::size_t skipped : {0, 1, 1024, 2999, 3000, 4000}) {
      const auto source = open_source(path, named());
      ASSERT_TRUE(source.ok());
      RawBatch batch;
      ASSERT_TRUE((*source)->next(batch, 1).ok());
      ASSERT_TRUE((*source)->skip(skipped).ok());
      const auto rest = rest_of(**source);
      const std::size_t left = 3000 - std::min<std::size_t>(3000, 1 + skipped);
      ASSERT_EQ(rest.size(), left);
      if (left > 0) {
        EXPECT_EQ(rest.front(), static_cast<double>(1 + skipped));
      }
    }
  }
}

TEST_F(ShareTest, SharesHaveEveryRowOnce) {
  for (const std::size_t rows : {1, 2, 255, 256, 257, 1000})
    for (const std::string& path : every_format(rows))
      for (const std::size_t count : {1, 2, 3, 5}) {
        SCOPED_TRACE(path + " " + std::to_string(rows) + " rows " + std::to_string(count) + " shares");
        const Shared all = read_shares(path, count);
        EXPECT_EQ(all.rows, all_of(rows));
        EXPECT_GT(all.sizes.front(), 0U);
      }
}

TEST_F(ShareTest, RangesAreEqualInSize) {
  const auto all = read_shares(dir_.write_file("t.npy", npy("<f8", shape_of(10), bytes_of(numbered(10)))), 3);
  EXPECT_THAT(all.sizes, ElementsAre(4, 3, 3));
}

TEST_F(ShareTest, TextIsCutAtLineEnds) {
  for (const std::string end : {"\n", "\r\n"})
    for (const std::size_t rows : {40, 997})
      for (const std::size_t count : {2, 3, 5, 7}) {
        SCOPED_TRACE(std::to_string(rows) + " rows " + std::to_string(count) + " shares");
        const auto all = read_shares(dir_.write_file("t.csv", as_csv(rows, end)), count, true);
        EXPECT_EQ(all.rows, all_of(rows));
        for (const std::size_t size : all.sizes) {
          EXPECT_GT(10 * size * count, 6 * rows) << "shares of very unequal size";
        }
      }
  // without a header, and without a last line feed
  const auto bare = read_shares(dir_.write_file("t.csv", "0,1\n1,1\n2,1\n3,1\n4,1\n5,1"), 3, true, HeaderRule::kNo);
  EXPECT_EQ(bare.rows, all_of(6));
  // line ends of another age: one share has them all
  EXPECT_EQ(read_shares(dir_.write_file("t.csv", as_csv(50, "\r")), 3, true).rows, all_of(50));
}

TEST_F(ShareTest, ACutInsideQuotesIsAnErrorOfTheShareBefore) {
  std::string text = "a,b,note\n1,2,\"";
  for (int i = 0; i < 100; ++i) text += "\n9,9,x";
  text += "\"\n3,4,x\n";
  SourceOptions options = named({.columns = {"a", "b"}});
  options.share = {0, 2, true};
  const auto source = open_source(dir_.write_file("t.csv", text), options);
  ASSERT_TRUE(source.ok());
  RawBatch batch;
  const Status status = (*source)->next(batch, 10);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("quote"));
}

// Notes with line breaks, doubled quotes, stray quotes, and what looks like rows.
std::string random_text(std::mt19937& random, std::size_t rows) {
  const std::vector<std::string> notes = {
      "x",          "\"x\"",     "5\" pipe",      " \"a\nb\" ",    "\"\"\"\n1,2,3\n\"\"\"",
      "\"7,7,\n\"", "a \"b\" c", "\"\r\n8,8,y\"", "\"it\"\"s\n\"", ""};
  std::uniform_int_distribution<std::size_t> any(0, notes.size() - 1);
  std::string text = "a,b,note\n";
  for (std::size_t i = 0; i < rows; ++i)
    text += std::to_string(i) + ",1," + notes[any(random)] + (i % 3 == 0 ? "\r\n" : "\n");
  return text;
}

TEST_F(ShareTest, CutTextIsReadRightOrRefused) {
  std::mt19937 random(20261116);
  std::size_t right = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t rows = 3 + static_cast<std::size_t>(round) % 40;
    const std::string path = dir_.write_file("t.csv", random_text(random, rows));
    for (const std::size_t count : {2, 3, 5}) {
      std::vector<double> found;
      bool whole = true;
      for (std::size_t index = 0; index < count && whole; ++index) {
        SourceOptions options = named({.columns = {"a", "b"}});
        options.share = {index, count, true};
        const auto source = open_source(path, options);
        whole = source.ok();
        RawBatch batch;
        while (whole) {
          whole = (*source)->next(batch, 7).ok();
          if (batch.rows == 0) break;
          for (std::size_t i = 0; i < batch.rows; ++i) found.push_back(batch.values[2 * i]);
        }
      }
      ++(whole ? right : refused);
      if (whole) {
        ASSERT_EQ(found, all_of(rows)) << read_file(path);
      }
    }
  }
  EXPECT_GT(right, 100U);
  EXPECT_GT(refused, 100U);
}

TEST_F(ShareTest, AFolderIsItsFilesInTheOrderOfNames) {
  const std::string path = folder({{"b.csv", "a,b\n2,0\n3,0\n"},
                                   {"a.csv", "a,b\n0,0\n1,0\n"},
                                   {"c.csv.gz", gzip("a,b\n4,0\n")},
                                   {"_SUCCESS", ""},
                                   {".hidden", "x"}});
  const auto source = open_source(path, named());
  ASSERT_TRUE(source.ok());
  EXPECT_THAT((*source)->columns(), ElementsAre("a", "b"));
  RawBatch batch;
  ASSERT_TRUE((*source)->next(batch, 100).ok());
  EXPECT_EQ(batch.rows, 2U) << "a batch is of one file";
  ASSERT_TRUE((*source)->next(batch, 1).ok());
  EXPECT_THAT((*source)->part(), HasSubstr("b.csv"));
  EXPECT_EQ(batch.first_row, 0U) << "rows are numbered in their file";
  EXPECT_THAT(rest_of(**source, false), ElementsAre(3, 4));
  for (const std::size_t count : {2, 3, 4, 5}) {
    Shared all = read_shares(path, count, true);
    EXPECT_EQ(all.rows, all_of(5));
    if (count == 2) {
      EXPECT_THAT(all.sizes, ElementsAre(3, 2));
    }
  }
}

TEST_F(ShareTest, AFolderThatIsNoTableIsRefused) {
  const std::string path = folder({{"_SUCCESS", ""}});
  expect_refusal(path, {"without data files"});
  folder({{"a.csv", "a,b\n0,0\n"}, {"b.csv", "b,a\n0,0\n"}});
  expect_refusal(path, {"b.csv", "other columns", "a.csv"});
  folder({{"b.csv", "a,b\n0,0\n1,x\n"}});
  expect_refusal(path, {"b.csv: row 2"});
  std::filesystem::create_directory(path + "/inner");
  expect_refusal(path, {"'inner'"});
}

TEST_F(ShareTest, SlicesPassOnWhatTheyAreAskedTo) {
  auto source = open_source(dir_.write_file("t.npy", npy("<f8", shape_of(100), bytes_of(numbered(100)))), {});
  ASSERT_TRUE(source.ok());
  SlicedSource sliced(*std::move(source), {3.0});
  ASSERT_TRUE(sliced.skip(60).ok());
  EXPECT_EQ(rest_of(sliced).size(), 40U);
}

}  // namespace
}  // namespace eigenveil::test
