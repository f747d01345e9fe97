// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/base/named_array.hpp"

namespace eigenveil::data {

/// The header (version 1.0) of a C-order float64 array of shape (rows, columns), or (rows,) for a vector. All headers
/// have one length, so that the number of rows can be filled in after they are written.
std::string npy_header(std::size_t rows, std::size_t columns, bool is_vector);

/// A whole .npy file.
std::string encode_npy(const NamedArray& array);

}  // namespace eigenveil::data
