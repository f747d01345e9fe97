// SPDX-License-Identifier: Apache-2.0
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;

std::string idx(int type, const std::vector<std::uint32_t>& dimensions, const std::string& data) {
  std::string bytes("\0\0", 2);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(dimensions.size());
  return bytes + bytes_of(dimensions, true) + data;
}

class Idx : public testing::Test {
 protected:
  TempDir dir_;

  std::string write(const std::string& bytes) const { return dir_.write_file("t-idx", bytes); }
};

template <class T>
std::string six() {
  return bytes_of(std::vector<T>{1, 2, 3, 4, 5, 100}, true);
}

TEST_F(Idx, EveryElementTypeIsRead) {
  const std::vector<std::pair<int, std::string>> all = {{0x08, six<std::uint8_t>()}, {0x09, six<std::int8_t>()},
                                                        {0x0b, six<std::int16_t>()}, {0x0c, six<std::int32_t>()},
                                                        {0x0d, six<float>()},        {0x0e, six<double>()}};
  for (const auto& [type, data] : all) {
    EXPECT_THAT(must_read(write(idx(type, {2, 3}, data))).values, ElementsAre(1, 2, 3, 4, 5, 100)) << type;
    EXPECT_THAT(must_read(dir_.write_file("t.gz", gzip(idx(type, {2, 3}, data))), {}, 1).values,
                ElementsAre(1, 2, 3, 4, 5, 100));
  }
  EXPECT_THAT(must_read(write(idx(0x09, {1}, "\xff"))).values, ElementsAre(-1));
  EXPECT_THAT(must_read(write(idx(0x08, {1}, "\xff"))).values, ElementsAre(255));
}

TEST_F(Idx, FurtherDimensionsAreFlattenedIntoColumns) {
  const Table images = must_read(write(idx(0x08, {2, 2, 3}, "abcdefghijkl")));
  EXPECT_EQ(images.columns.size(), 6U);
  EXPECT_EQ(images.at(1, 0), 'g');
  EXPECT_EQ(must_read(write(idx(0x08, {12}, "abcdefghijkl"))).columns.size(), 1U);
}

TEST_F(Idx, TruncatedOverlongAndImpossibleFilesAreRefused) {
  const std::string whole = idx(0x0c, {2, 3}, six<std::int32_t>());
  for (std::size_t cut = 4; cut < whole.size(); ++cut) {
    expect_refusal(write(whole.substr(0, cut)), {"truncated"});
    expect_refusal(dir_.write_file("t.gz", gzip(whole.substr(0, cut))), {"truncated"});
  }
  expect_refusal(write(whole + "x"), {"longer than announced"});
  expect_refusal(dir_.write_file("t.gz", gzip(whole + "x")), {"goes on after the last row"});
  EXPECT_EQ(must_read(write(idx(0x08, {0, 3}, ""))).rows, 0U);
  expect_refusal(write(idx(0x08, {3, 0}, "")), {"0 columns"});
  expect_refusal(write(idx(0x0e, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, "abc")), {"announces more than"});
  expect_refusal(dir_.write_file("t.gz", gzip(idx(0x0e, {UINT32_MAX, 1000000}, "abc"))), {"truncated"});
  expect_refusal(dir_.write_file("t-ubyte", "abcdefgh"), {"named like IDX"});
}

TEST_F(Idx, FashionMnistIsRead) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  const Table images = must_read(folder + "t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.rows, 10'000U);
  EXPECT_EQ(images.columns.size(), 784U);
  for (double value : images.values) ASSERT_TRUE(value >= 0 && value <= 255);
  const Table labels = must_read(folder + "t10k-labels-idx1-ubyte.gz");
  std::vector<int> counts(10);
  for (double label : labels.values) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_THAT(counts, testing::Each(1000));
}

}  // namespace
}  // namespace eigenveil::test
