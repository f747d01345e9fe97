// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format.hpp"

namespace eigenveil::data {
namespace {

/// All bytes of the array. Grows with what arrives, so that a false size costs nothing.
Result<std::shared_ptr<std::vector<char>>> hold(ByteStream& stream, std::uint64_t bytes) {
  auto held = std::make_shared<std::vector<char>>();
  while (held->size() < bytes) {
    const std::size_t done = held->size();
    const std::size_t piece = std::min<std::uint64_t>(kPieceBytes, bytes - done);
    held->resize(done + piece);
    EIGENVEIL_TRY(read_exactly(stream, held->data() + done, piece, "array"));
  }
  EIGENVEIL_TRY(expect_end(stream));
  return held;
}

}  // namespace

Result<Table> npy_stream_table(std::unique_ptr<ByteStream> stream, const NpyHeader& header) {
  const std::string name = stream->name();
  if (!header.fortran_order)
    return array_table(name, header.shape, row_order_reader(std::move(stream), header.shape, header.type));
  if (header.array_bytes() > kLargestHeldArray)
    return bad_input(
        fmt::format("{}: is packed or a pipe, and stored column by column (Fortran order), which must fit in {} MiB of "
                    "memory but takes {}; save it row by row (numpy.ascontiguousarray) or as a plain .npy file",
                    name, kLargestHeldArray >> 20, header.array_bytes() >> 20));
  FetchBytes fetch = [bytes = EIGENVEIL_TRY(hold(*stream, header.array_bytes()))](std::uint64_t offset, char* to,
                                                                                  std::size_t size) {
    std::copy_n(bytes->data() + offset, size, to);
    return Status();
  };
  return array_table(name, header.shape, column_order_reader(std::move(fetch), header.shape, header.type));
}

Result<Table> open_npy(const Recognised& from) {
  std::unique_ptr<ByteStream> stream = from.stream();
  const auto header = EIGENVEIL_TRY(read_npy_header(*stream));
  if (!from.in_order())
    EIGENVEIL_TRY(expect_size(stream->name(), header.bytes, header.shape, header.type.size, from.file->size()));
  if (from.in_order() || !header.fortran_order) return npy_stream_table(std::move(stream), header);
  FetchBytes fetch = [file = from.file, start = header.bytes](std::uint64_t offset, char* to, std::size_t size) {
    return file->read_all(start + offset, to, size);
  };
  return array_table(stream->name(), header.shape, column_order_reader(std::move(fetch), header.shape, header.type));
}

}  // namespace eigenveil::data
