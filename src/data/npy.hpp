#pragma once

#include "array.hpp"

namespace eigenveil::data {

/// A Fortran-order array that can only be read in order (packed) is held in memory; this is the largest accepted.
constexpr std::uint64_t kLargestHeldArray = std::uint64_t{256} << 20;

struct NpyHeader {
  ElementType type;
  bool fortran_order = false;
  ArrayShape shape;
  std::vector<std::uint64_t> dimensions;  ///< all of them; the shape has the product of those after the first
  std::uint64_t bytes = 0;                ///< of the header itself: where the elements begin

  std::uint64_t array_bytes() const { return std::uint64_t{shape.rows} * shape.columns * type.size; }
};

/// Reads magic, version and dictionary (NumPy enhancement proposal 1), and leaves the stream at the first element.
/// Arrays of more dimensions are refused.
Result<NpyHeader> read_npy_header(ByteStream& stream, std::size_t most_dimensions = 2);

/// A source over a stream that stands behind its header: packed NPY and members of NPZ.
Result<std::unique_ptr<RowSource>> npy_stream_source(std::unique_ptr<ByteStream> stream, const NpyHeader& header,
                                                     const SourceOptions& options);

/// One array of an NPZ file; the stream stands at its first element, and the file is as long as it should be.
struct NpzArray {
  std::unique_ptr<ByteStream> stream;
  NpyHeader header;
};
/// The names of its arrays, without .npy.
Result<std::vector<std::string>> npz_arrays(const std::string& path);
/// An empty name stands for the only array.
Result<NpzArray> open_npz_array(const std::string& path, const std::string& name, std::size_t most_dimensions);

}  // namespace eigenveil::data
