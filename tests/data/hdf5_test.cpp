// SPDX-License-Identifier: Apache-2.0
#include <hdf5.h>

#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;

struct Layout {
  std::vector<hsize_t> chunk = {};  ///< empty: contiguous
  bool pack = false;
  hid_t stored = H5T_NATIVE_DOUBLE;
};

/// Writes one data set into a file that may already have others.
void write_set(const std::string& path, const std::string& name, const std::vector<hsize_t>& shape,
               const std::vector<double>& values, const Layout& layout = {}) {
  const hid_t file = std::filesystem::exists(path) ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                                   : H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  if (!layout.chunk.empty()) H5Pset_chunk(creation, static_cast<int>(layout.chunk.size()), layout.chunk.data());
  if (layout.pack) H5Pset_deflate(creation, 6);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name.c_str(), layout.stored, space, links, creation, H5P_DEFAULT);
  ASSERT_GE(set, 0);
  if (!values.empty()) {
    ASSERT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(links);
  H5Pclose(creation);
  H5Fclose(file);
}

std::vector<double> counting(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i % 120);
  return values;
}

class Hdf5 : public testing::Test {
 protected:
  TempDir dir_;
  std::string path_ = dir_.file("t.h5");
};

TEST_F(Hdf5, LinksToOtherFilesAreNotFollowed) {
  write_set(path_, "x", {20, 6}, counting(120));
  const std::string linking = dir_.file("linking.h5");
  write_set(linking, "long", {2000, 6}, counting(12000));
  const hid_t file = H5Fopen(linking.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Lcreate_external(path_.c_str(), "x", file, "out", H5P_DEFAULT, H5P_DEFAULT), 0);
  ASSERT_GE(H5Lcreate_soft("/long", file, "in", H5P_DEFAULT, H5P_DEFAULT), 0);
  H5Fclose(file);
  SourceOptions options;
  options.member = "out";
  expect_refusal(linking, {"a link to another file"}, options);
  options.member = "in";
  EXPECT_EQ(must_read(linking, options).values, counting(12000));
}

TEST_F(Hdf5, EveryNumericTypeIsRead) {
  int number = 0;
  for (hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I8LE, H5T_STD_I16BE, H5T_STD_I32LE, H5T_STD_I64BE,
                     H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32BE, H5T_STD_U64LE}) {
    const std::string path = dir_.file("type" + std::to_string(number++) + ".h5");
    write_set(path, "x", {20, 6}, counting(120), {.stored = type});
    EXPECT_EQ(must_read(path).values, counting(120));
  }
}

TEST_F(Hdf5, ContiguousChunkedAndPackedLayoutsAreTheSame) {
  const std::vector<double> values = counting(std::size_t{50'000} * 7);
  write_set(dir_.file("a.h5"), "x", {50'000, 7}, values);
  write_set(dir_.file("b.h5"), "x", {50'000, 7}, values, {.chunk = {1000, 3}});
  write_set(dir_.file("c.h5"), "x", {50'000, 7}, values, {.chunk = {40'000, 7}, .pack = true});
  for (const char* name : {"a.h5", "b.h5", "c.h5"})
    for (std::size_t size : {777U, 100'000U}) EXPECT_EQ(must_read(dir_.file(name), {}, size).values, values) << name;
}

TEST_F(Hdf5, OneDimensionIsOneColumnAndColumnsAreChosenByPosition) {
  write_set(path_, "group/x", {3}, {1, 2, 3});
  EXPECT_THAT(must_read(path_).columns, ElementsAre("1"));
  write_set(path_, "y", {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(must_read(path_, {.columns = {"3", "1"}, .member = "y"}).values, ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(must_read(path_, {.member = "/group/x"}).values, ElementsAre(1, 2, 3));
  expect_refusal(path_, {"2 data sets", "'group/x', 'y'"});
  expect_refusal(path_, {"no data set 'z'"}, {.member = "z"});
  expect_refusal(path_, {"no data set 'group'"}, {.member = "group"});
}

TEST_F(Hdf5, AMatlabUserBlockIsSkipped) {
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(creation, 512);
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
  H5Fclose(file);
  H5Pclose(creation);
  write_set(path_, "x", {3}, {1, 2, 3});
  std::filesystem::rename(path_, dir_.file("t.mat"));
  EXPECT_THAT(must_read(dir_.file("t.mat")).values, ElementsAre(1, 2, 3));
}

TEST_F(Hdf5, WrongShapesAndTypesAreRefused) {
  write_set(path_, "cube", {2, 2, 2}, counting(8));
  expect_refusal(path_, {"'cube'", "3 dimensions"});
  write_set(dir_.file("zero.h5"), "x", {0, 3}, {});
  EXPECT_EQ(must_read(dir_.file("zero.h5")).rows, 0U);
  write_set(dir_.file("columns.h5"), "x", {3, 0}, {});
  expect_refusal(dir_.file("columns.h5"), {"0 columns"});
  write_set(dir_.file("unwritten.h5"), "x", {1'000'000'000'000, 3}, {}, {.chunk = {100, 3}});
  expect_refusal(dir_.file("unwritten.h5"), {"holds no values"});
  write_set(dir_.file("wide.h5"), "x", {3, 2'000'000}, {}, {.chunk = {3, 100}});
  expect_refusal(dir_.file("wide.h5"), {"announces more than"});
  write_set(dir_.file("chunk.h5"), "x", {100, 200'000}, {}, {.chunk = {100, 200'000}});
  expect_refusal(dir_.file("chunk.h5"), {"chunks are larger than 64 MiB"});

  const hid_t file = H5Fcreate(dir_.file("text.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  expect_refusal(dir_.file("text.h5"), {});  // open for writing elsewhere, and nothing in it
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 5);
  const hsize_t three = 3;
  const hid_t space = H5Screate_simple(1, &three, nullptr);
  H5Dclose(H5Dcreate2(file, "t", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Tclose(text);
  H5Fclose(file);
  expect_refusal(dir_.file("text.h5"), {"plain numbers"});
}

TEST_F(Hdf5, ValuesKeptInOtherFilesAreRefused) {
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(creation, dir_.write_file("elsewhere", std::string(24, '\0')).c_str(), 0, 24);
  const hsize_t three = 3;
  const hid_t space = H5Screate_simple(1, &three, nullptr);
  H5Dclose(H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Sclose(space);
  H5Pclose(creation);
  H5Fclose(file);
  expect_refusal(path_, {"other files"});
}

TEST_F(Hdf5, TruncatedFilesAreRefusedAndHdf5StaysQuiet) {
  write_set(path_, "x", {1000, 10}, counting(10'000));
  const std::string whole = read_file(path_);
  testing::internal::CaptureStderr();
  for (std::size_t cut : {whole.size() - 1, whole.size() / 2, std::size_t{100}, std::size_t{8}})
    expect_refusal(dir_.write_file("cut.h5", whole.substr(0, cut)), {"truncated or damaged"});
  expect_refusal(dir_.write_file("text.h5", "1,2\n"), {"named like HDF5"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace eigenveil::test
