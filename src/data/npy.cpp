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
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, bytes - done));
    held->resize(done + piece);
    EIGENVEIL_TRY(read_exactly(stream, held->data() + done, piece, "array"));
  }
  EIGENVEIL_TRY(expect_end(stream));
  return held;
}

}  // namespace

Result<std::unique_ptr<RowSource>> npy_stream_source(std::unique_ptr<ByteStream> stream, const NpyHeader& header,
                                                     const SourceOptions& options) {
  const std::string name = stream->name();
  if (!header.fortran_order)
    return array_source(name, header.shape, row_order_reader(std::move(stream), header.shape, header.type), options);
  if (header.array_bytes() > kLargestHeldArray)
    return bad_input(
        fmt::format("{}: is packed and stored column by column (Fortran order), which must fit in {} MiB of "
                    "memory but takes {}; save it row by row (numpy.ascontiguousarray) or as a plain .npy file",
                    name, kLargestHeldArray >> 20, header.array_bytes() >> 20));
  const auto held = hold(*stream, header.array_bytes());
  if (!held.ok()) return held.error();
  FetchBytes fetch = [bytes = *held](std::uint64_t offset, char* to, std::size_t size) {
    std::copy_n(bytes->data() + offset, size, to);
    return Status();
  };
  return array_source(name, header.shape, column_order_reader(std::move(fetch), header.shape, header.type), options);
}

Result<std::unique_ptr<RowSource>> open_npy(const Recognised& from, const SourceOptions& options) {
  std::unique_ptr<ByteStream> stream = from.stream();
  const Result<NpyHeader> header = read_npy_header(*stream);
  if (!header.ok()) return header.error();
  if (!from.gzip)
    EIGENVEIL_TRY(expect_size(stream->name(), header->bytes, header->shape, header->type.size, from.file->size()));
  if (from.gzip || !header->fortran_order) return npy_stream_source(std::move(stream), *header, options);
  FetchBytes fetch = [file = from.file, start = header->bytes](std::uint64_t offset, char* to, std::size_t size) {
    return file->read_all(start + offset, to, size);
  };
  return array_source(stream->name(), header->shape, column_order_reader(std::move(fetch), header->shape, header->type),
                      options);
}

}  // namespace eigenveil::data
