// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <utility>

#include "array.hpp"
#include "format.hpp"

namespace eigenveil::data {
namespace {

/// The IDX format of the MNIST files: two zero bytes, element type, number of dimensions, then each dimension and the
/// elements, all big-endian, last dimension fastest.
struct IdxHeader {
  ElementType type;
  ArrayShape shape;
  std::uint64_t bytes = 0;
};

std::optional<ElementType> element_type(unsigned char code) {
  switch (code) {
    case 0x08:
      return ElementType{ElementKind::kUnsigned, 1, true};
    case 0x09:
      return ElementType{ElementKind::kSigned, 1, true};
    case 0x0b:
      return ElementType{ElementKind::kSigned, 2, true};
    case 0x0c:
      return ElementType{ElementKind::kSigned, 4, true};
    case 0x0d:
      return ElementType{ElementKind::kFloat, 4, true};
    case 0x0e:
      return ElementType{ElementKind::kFloat, 8, true};
    default:
      return std::nullopt;
  }
}

Result<IdxHeader> read_header(ByteStream& stream) {
  std::array<unsigned char, 4> bytes{};
  const auto read_four = [&] { return read_exactly(stream, reinterpret_cast<char*>(bytes.data()), 4, "IDX header"); };
  EIGENVEIL_TRY(read_four());
  const std::optional<ElementType> type = element_type(bytes[2]);
  const std::size_t count = bytes[3];
  if (!type || count == 0)
    return bad_input(fmt::format("{}: the IDX header is damaged: element type {:#04x}, {} dimensions", stream.name(),
                                 bytes[2], count));
  std::vector<std::uint64_t> dimensions;
  for (std::size_t i = 0; i < count; ++i) {
    EIGENVEIL_TRY(read_four());
    dimensions.push_back(std::uint64_t{bytes[0]} << 24 | std::uint64_t{bytes[1]} << 16 | std::uint64_t{bytes[2]} << 8 |
                         bytes[3]);
  }
  const Result<ArrayShape> shape = array_shape(stream.name(), dimensions, type->size);
  if (!shape.ok()) return shape.error();
  return IdxHeader{*type, *shape, 4 + 4 * count};
}

}  // namespace

Result<Table> open_idx(const Recognised& from) {
  std::unique_ptr<ByteStream> stream = from.stream();
  const std::string name = stream->name();
  const Result<IdxHeader> header = read_header(*stream);
  if (!header.ok()) return header.error();
  if (!from.in_order())
    EIGENVEIL_TRY(expect_size(name, header->bytes, header->shape, header->type.size, from.file->size()));
  return array_table(name, header->shape, row_order_reader(std::move(stream), header->shape, header->type));
}

}  // namespace eigenveil::data
