// SPDX-License-Identifier: Apache-2.0
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;

class Npy : public testing::Test {
 protected:
  TempDir dir_;

  std::string write(const std::string& bytes) const { return dir_.write_file("t.npy", bytes); }
};

/// 2 x 3, rows (1 2 3), (4 5 6), in both byte orders and both storage orders.
template <class T>
void expect_element_type(const TempDir& dir, const std::string& code) {
  for (bool big : {false, true})
    for (bool fortran : {false, true}) {
      const std::vector<T> stored = fortran ? std::vector<T>{1, 4, 2, 5, 3, 6} : std::vector<T>{1, 2, 3, 4, 5, 6};
      const std::string bytes = npy((big ? ">" : "<") + code, "(2, 3)", bytes_of(stored, big), fortran);
      const Table table = must_read(dir.write_file("t.npy", bytes));
      EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4, 5, 6)) << code << " big " << big << " fortran " << fortran;
      EXPECT_THAT(table.columns, ElementsAre("1", "2", "3"));
      EXPECT_EQ(must_read(dir.write_file("t.npy.gz", gzip(bytes)), {}, 1).values, table.values);
    }
}

TEST_F(Npy, EveryElementTypeByteOrderAndStorageOrderIsRead) {
  expect_element_type<float>(dir_, "f4");
  expect_element_type<double>(dir_, "f8");
  expect_element_type<std::int8_t>(dir_, "i1");
  expect_element_type<std::int16_t>(dir_, "i2");
  expect_element_type<std::int32_t>(dir_, "i4");
  expect_element_type<std::int64_t>(dir_, "i8");
  expect_element_type<std::uint8_t>(dir_, "u1");
  expect_element_type<std::uint16_t>(dir_, "u2");
  expect_element_type<std::uint32_t>(dir_, "u4");
  expect_element_type<std::uint64_t>(dir_, "u8");
}

TEST_F(Npy, SignsAndSpecialValuesSurvive) {
  EXPECT_THAT(must_read(write(npy("<i2", "(3,)", bytes_of<std::int16_t>({-1, -32768, 32767})))).values,
              ElementsAre(-1, -32768, 32767));
  EXPECT_THAT(must_read(write(npy(">f4", "(2,)", bytes_of<float>({-0.5F, INFINITY}, true)))).values,
              ElementsAre(-0.5, kInf));
  EXPECT_THAT(must_read(write(npy("|b1", "(2,)", std::string("\1\0", 2)))).values, ElementsAre(1, 0));
  EXPECT_THAT(must_read(write(npy("<f8", "(1,)", bytes_of<double>({kNaN})))).values,
              SameValues(std::vector<double>{kNaN}));
}

TEST_F(Npy, OneDimensionIsOneColumn) {
  const Table table = must_read(write(npy("<f8", "(3,)", bytes_of<double>({1, 2, 3}), true)), {}, 2);
  EXPECT_THAT(table.columns, ElementsAre("1"));
  EXPECT_EQ(table.rows, 3U);
}

TEST_F(Npy, EveryVersionIsRead) {
  for (int version : {1, 2, 3})
    EXPECT_THAT(must_read(write(npy("<f8", "(1, 2)", bytes_of<double>({1, 2}), false, version))).values,
                ElementsAre(1, 2));
  expect_refusal(write(npy("<f8", "(1, 2)", bytes_of<double>({1, 2}), false, 4)), {"version 4"});
}

TEST_F(Npy, ColumnsAndCategoriesAreChosenByPosition) {
  const std::string path = write(npy("<f8", "(2, 3)", bytes_of<double>({1, 2, 3, 4, 5, 6})));
  EXPECT_THAT(must_read(path, {.columns = {"3", "1-2"}}).values, ElementsAre(3, 1, 2, 6, 4, 5));
  EXPECT_THAT(must_read(path, {.columns = {"3"}, .categories = {{"3", {"6.0", "3"}}}}).values, ElementsAre(1, 0));
  expect_refusal(path, {"row 2", "column '3'", "'6'"}, {.categories = {{"3", {"3"}}}});
  EXPECT_THAT(must_read(path, {.columns = {"3"}, .categories = {{"3", {"rest", "3"}, 0}}}).values, ElementsAre(1, 0));
  expect_refusal(path, {"no column 'age'", "1 to 3"}, {.columns = {"age"}});
  expect_refusal(path, {"member"}, {.member = "x"}, ErrorCode::kUsage);
}

TEST_F(Npy, FortranOrderIsReadInStripesOfAnySize) {
  constexpr std::size_t kRows = 1000;
  constexpr std::size_t kColumns = 17;
  std::vector<std::int32_t> stored;
  for (std::size_t c = 0; c < kColumns; ++c)
    for (std::size_t r = 0; r < kRows; ++r) stored.push_back(static_cast<std::int32_t>(r * 100 + c));
  const std::string path = write(npy("<i4", "(1000, 17)", bytes_of(stored), true));
  for (std::size_t size : {1U, 64U, 999U, 5000U}) {
    const Table table = must_read(path, {.columns = {"17", "2"}}, size);
    ASSERT_EQ(table.rows, kRows);
    for (std::size_t r = 0; r < kRows; ++r) {
      ASSERT_EQ(table.at(r, 0), static_cast<double>(r * 100 + 16));
      ASSERT_EQ(table.at(r, 1), static_cast<double>(r * 100 + 1));
    }
  }
}

TEST_F(Npy, WrongShapesAreRefused) {
  expect_refusal(write(npy("<f8", "(2, 2, 2)", std::string(64, '\0'))), {"3 dimensions", "expected 2"});
  expect_refusal(write(npy("<f8", "()", std::string(8, '\0'))), {"0 dimensions"});
  EXPECT_EQ(must_read(write(npy("<f8", "(0, 3)", ""))).rows, 0U);
  expect_refusal(write(npy("<f8", "(3, 0)", "")), {"0 columns"});
  for (const char* shape : {"(4294967296, 4294967296)", "(18446744073709551615, 8)", "(99999999999999999999999, 2)",
                            "(2305843009213693952, 1)", "(1, 18446744073709551615)", "(3, 1000001)"})
    expect_refusal(write(npy("<f8", shape, std::string(64, '\0'))), {"announces"});
  expect_refusal(write(npy("<f8", "(1000000000000, 1)", std::string(64, '\0'))), {"truncated"});
  for (const char* shape : {"(-1, 2)", "(a,)", "(1 2)", "[1, 2]", "(1,", "(,)"})
    expect_refusal(write(npy("<f8", shape, std::string(64, '\0'))), {"header is damaged"});
}

TEST_F(Npy, WrongElementTypesAreRefused) {
  expect_refusal(write(npy("|O", "(2,)", std::string(16, '\0'))), {"Python objects"});
  for (const char* code : {"<c16", "<U5", "<f2", "<M8[ns]", "", "<"})
    expect_refusal(write(npy(code, "(2,)", std::string(64, '\0'))),
                   {"type '" + std::string(code) + "'", "expected f4"});
  std::string structured = npy("XX", "(2,)", std::string(16, '\0'));
  structured.replace(structured.find("'XX'"), 4, "[('a', '<f8')]");
  expect_refusal(write(structured), {"structured"});
}

TEST_F(Npy, TruncatedAndOverlongFilesAreRefused) {
  const std::string whole = npy("<f8", "(4, 2)", std::string(64, '\1'));
  for (std::size_t cut = 6; cut < whole.size(); ++cut) expect_refusal(write(whole.substr(0, cut)), {"truncated"});
  expect_refusal(write(whole + "x"), {"longer than announced"});
  expect_refusal(dir_.write_file("cut.npy.gz", gzip(whole.substr(0, whole.size() - 1))), {"truncated"});
  expect_refusal(dir_.write_file("long.npy.gz", gzip(whole + "x")), {"goes on after the last row"});
  expect_refusal(dir_.write_file("text.npy", "1,2\n"), {"named like NPY"});
}

TEST_F(Npy, NumpyFilesAreRead) {
  if (!has_numpy()) GTEST_SKIP() << "no /usr/bin/python3 with numpy";
  ASSERT_TRUE(run_python(dir_, R"(
import numpy as np
a = np.arange(2000, dtype='f8').reshape(200, 10) / 7
np.save('c.npy', a)
np.save('f.npy', np.asfortranarray(a.astype('f4')))
np.save('big.npy', a.astype('>i8'))
np.save('one.npy', a[:, 0])
np.savez('one.npz', x=a)
np.savez_compressed('packed.npz', x=np.asfortranarray(a))
np.savez('two.npz', x=a, y=a.astype('u1'))
np.savez('none.npz')
np.savez('cube.npz', x=a.reshape(2, 100, 10))
np.save('object.npy', np.array([1, 'a', None], dtype=object), allow_pickle=True)
)"));
  std::vector<double> wanted(2000);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<double>(i) / 7.0;
  EXPECT_EQ(must_read(dir_.file("c.npy"), {}, 33).values, wanted);
  EXPECT_EQ(must_read(dir_.file("one.npz"), {}, 33).values, wanted);
  EXPECT_EQ(must_read(dir_.file("packed.npz"), {}, 33).values, wanted);
  EXPECT_EQ(must_read(dir_.file("two.npz"), {.member = "x"}).values, wanted);
  EXPECT_EQ(must_read(dir_.file("two.npz"), {.member = "y.npy"}).at(199, 9), std::floor(1999 / 7.0) - 256);
  EXPECT_EQ(must_read(dir_.file("f.npy")).at(3, 5), static_cast<double>(static_cast<float>(35 / 7.0)));
  EXPECT_EQ(must_read(dir_.file("big.npy")).at(199, 9), std::floor(1999 / 7.0));
  EXPECT_EQ(must_read(dir_.file("one.npy")).rows, 200U);
  expect_refusal(dir_.file("two.npz"), {"2 arrays", "'x', 'y'"});
  expect_refusal(dir_.file("two.npz"), {"no array 'z'", "'x', 'y'"}, {.member = "z"});
  expect_refusal(dir_.file("none.npz"), {"no .npy array"});
  expect_refusal(dir_.file("cube.npz"), {"array 'x'", "3 dimensions"});
  expect_refusal(dir_.file("object.npy"), {"Python objects"});

  const std::string packed = read_file(dir_.file("packed.npz"));
  for (std::size_t cut : {packed.size() - 1, packed.size() / 2, std::size_t{30}})
    expect_refusal(dir_.write_file("cut.npz", packed.substr(0, cut)), {"truncated"});
  std::string plain = read_file(dir_.file("one.npz"));
  plain[plain.size() / 2] = static_cast<char>(plain[plain.size() / 2] ^ 1);
  expect_refusal(dir_.write_file("crc.npz", plain), {"damaged"});
}

TEST_F(Npy, ALargePackedFortranArrayIsRefusedInPlainWords) {
  if (!has_numpy()) GTEST_SKIP() << "no /usr/bin/python3 with numpy";
  ASSERT_TRUE(run_python(dir_,
                         "import numpy as np\n"
                         "np.savez_compressed('f.npz', x=np.zeros((300 << 17, 2), 'f4', order='F'))\n"));
  expect_refusal(dir_.file("f.npz"), {"Fortran", "256 MiB", "300", "ascontiguousarray"});
}

TEST_F(Npy, HandwrittenNumeralsAreRead) {
  const std::string path = shared_data("mfeat/mor6.npy");
  if (path.empty()) GTEST_SKIP() << "no shared data sets beside this checkout";
  const Table table = must_read(path);
  EXPECT_EQ(table.rows, 2000U);
  EXPECT_EQ(table.columns.size(), 6U);
  const Table labels = must_read(shared_data("mfeat/label.npy"),
                                 {.categories = {{"1", {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}}}});
  EXPECT_EQ(labels.rows, 2000U);
  EXPECT_EQ(labels.at(0, 0), 0);
  EXPECT_EQ(must_read(shared_data("mfeat/pix240.npy")).columns.size(), 240U);
}

}  // namespace
}  // namespace eigenveil::test
