#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "eigenveil/release/npz.hpp"

namespace eigenveil {

/// Every header we write has this length, so that the number of rows can be filled in after they are written.
inline constexpr std::size_t kNpyHeaderBytes = 128;

/// The .npy header (version 1.0) of a C-order float64 array of shape (rows, columns), or (rows,) for a vector.
std::string npy_header(std::size_t rows, std::size_t columns, bool is_vector);

std::string encode_npy(const NamedArray& array);

/// Refuses a file of `size` bytes whose header, which must be in its `beginning`, announces another size.
Status check_npy_size(std::string_view beginning, std::uint64_t size, const std::string& where);

/// Reads f4, f8 and integer arrays of one or two dimensions in either order. `where` begins every error message.
/// Refuses more numbers than `most_numbers` before memory is taken for them.
Result<NamedArray> decode_npy(std::string name, std::string_view bytes, const std::string& where,
                              std::uint64_t most_numbers);

}  // namespace eigenveil
