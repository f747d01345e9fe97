// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "array.hpp"

namespace eigenveil::data {

class ZipArchive;

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// A Fortran-order array that can only be read in order (packed, or a pipe) is held in memory; this is the largest
/// accepted.
constexpr std::uint64_t kLargestHeldArray = std::uint64_t{256} << 20;

struct NpyHeader {
  ElementType type;
  bool fortran_order = false;
  ArrayShape shape;
  std::vector<std::uint64_t> dimensions;  ///< all of them; the shape has the product of those after the first
  std::uint64_t bytes = 0;                ///< of the header itself: where the elements begin

  std::uint64_t array_bytes() const { return std::uint64_t{shape.rows} * shape.columns * type.size; }
};

/// What an array may look like. What is beyond is refused.
struct NpyLimits {
  std::size_t most_dimensions = 2;
  bool no_columns = false;  ///< (5, 0) is an array too; there is nothing in it to learn from
};

/// Reads magic, version and dictionary (NumPy enhancement proposal 1), and leaves the stream at the first element.
Result<NpyHeader> read_npy_header(ByteStream& stream, const NpyLimits& limits = {});

/// All elements in the order of the file, from a stream that stands at the first; then it must end.
template <class Use>
Status for_each_number(ByteStream& stream, const NpyHeader& header, const Use& use) {
  std::vector<char> bytes;
  for (std::uint64_t left = header.array_bytes(); left > 0; left -= bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(left, kPieceBytes));
    EIGENVEIL_TRY(read_exactly(stream, bytes.data(), bytes.size(), "array"));
    with_loader(header.type, [&](const auto& load) {
      for (std::size_t at = 0; at < bytes.size(); at += header.type.size) use(load(bytes.data() + at));
    });
  }
  return expect_end(stream);
}

/// A table over a stream that stands behind its header: packed NPY, NPY from a pipe, members of NPZ.
Result<Table> npy_stream_table(std::unique_ptr<ByteStream> stream, const NpyHeader& header);

/// One array of an NPZ file; the stream stands at its first element, and the member is as long as it should be.
struct NpzArray {
  std::unique_ptr<ByteStream> stream;
  NpyHeader header;
};
Result<NpzArray> open_npz_array(const ZipArchive& archive, std::size_t index, const std::string& path,
                                const NpyLimits& limits);
/// What NumPy calls the array in this member; none: it is no array.
std::optional<std::string> array_name(const std::string& member);

}  // namespace eigenveil::data
