// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <string>
#include <vector>

namespace eigenveil::test {

/// Writes one table as the data set "x" of a new file, in numbers of a type, and returns the path.
inline std::string write_hdf5(const std::string& path, std::size_t columns, const std::vector<double>& values,
                              hid_t type = H5T_NATIVE_DOUBLE) {
  const hsize_t shape[2] = {values.size() / columns, columns};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
  return path;
}

}  // namespace eigenveil::test
