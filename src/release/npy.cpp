#include "npy.hpp"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace eigenveil {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";

struct Layout {
  std::string type;  ///< "f8", "i4", ...
  bool fortran = false;
  std::size_t rows = 0;
  std::size_t columns = 1;
  bool is_vector = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == ',')) text.remove_suffix(1);
  return text;
}

/// The text that follows 'key': in the header's Python dictionary.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const std::string quoted = fmt::format("'{}'", key);
  const auto at = header.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  const auto colon = header.find(':', at + quoted.size());
  if (colon == std::string_view::npos) return std::nullopt;
  return trimmed(header.substr(colon + 1));
}

std::optional<std::vector<std::size_t>> parse_shape(std::string_view text) {
  const auto end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  text = trimmed(text.substr(1, end - 1));
  std::vector<std::size_t> shape;
  while (!text.empty()) {
    constexpr std::size_t kLargest = std::size_t{1} << 48U;
    std::size_t length = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc() || length > kLargest) return std::nullopt;
    shape.push_back(length);
    text = trimmed(text.substr(static_cast<std::size_t>(rest - text.data())));
  }
  return shape;
}

/// Takes the header off the front of `bytes`.
Result<Layout> take_header(std::string_view& bytes, const std::string& where) {
  const auto broken = [&](std::string_view why) {
    return bad_input(fmt::format("{}: {}. Save the array again with numpy.save or numpy.savez.", where, why));
  };
  constexpr std::size_t kPrefix = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < kPrefix + 4) return broken("is not in NPY format");
  const int version = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (version < 1 || version > 3) return broken(fmt::format("has NPY version {}, which is not known", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + kPrefix, length_bytes);
  bytes.remove_prefix(kPrefix + length_bytes);
  if (length > bytes.size()) return broken("ends inside its header");
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);

  const auto type = value_of(header, "descr");
  const auto order = value_of(header, "fortran_order");
  const auto shape_text = value_of(header, "shape");
  if (!type || !order || !shape_text) return broken("has an NPY header without descr, fortran_order or shape");
  const auto shape = parse_shape(*shape_text);
  if (!shape) return broken("has an NPY header whose shape cannot be read");
  if (shape->size() != 1 && shape->size() != 2) {
    return broken(fmt::format("has {} dimensions, expected one or two", shape->size()));
  }
  constexpr std::size_t kTypeText = 5;  // '<f8' with its quotes
  if (type->size() < kTypeText || (*type)[0] != '\'' || (*type)[kTypeText - 1] != '\'') {
    return broken("has elements that are not plain numbers");
  }
  if ((*type)[1] == '>') return broken("is stored big-endian, expected little-endian");
  Layout layout;
  layout.type = std::string(type->substr(2, 2));
  layout.fortran = order->starts_with("True");
  layout.is_vector = shape->size() == 1;
  layout.rows = (*shape)[0];
  layout.columns = layout.is_vector ? 1 : (*shape)[1];
  return layout;
}

/// The second character of a type is its size in bytes. 0: no type of numbers, which is refused later.
std::size_t element_size(const Layout& layout) {
  const char digit = layout.type[1];
  const bool number = std::string_view("fiu").find(layout.type[0]) != std::string_view::npos;
  return number && digit >= '1' && digit <= '8' ? static_cast<std::size_t>(digit - '0') : 0;
}

/// Rows times columns, if that many numbers are what follows.
Result<std::size_t> numbers_in(const Layout& layout, std::uint64_t bytes, const std::string& where) {
  std::size_t count = 0;
  std::size_t expected = 0;
  const std::size_t size = element_size(layout);
  if (__builtin_mul_overflow(layout.rows, layout.columns, &count) || __builtin_mul_overflow(count, size, &expected) ||
      (size > 0 && expected != bytes)) {
    return bad_input(
        fmt::format("{}: its header says {} x {} numbers of {} bytes, but {} bytes follow. The file is "
                    "damaged; make it again.",
                    where, layout.rows, layout.columns, size, bytes));
  }
  return count;
}

template <class T>
Result<Matrix> convert(const Layout& layout, std::string_view bytes, const std::string& where) {
  // Nothing is allocated before the bytes are known to be there.
  const auto numbers = numbers_in(layout, bytes.size(), where);
  if (!numbers.ok()) return numbers.error();
  const std::size_t count = *numbers;
  Matrix values(static_cast<Eigen::Index>(layout.rows), static_cast<Eigen::Index>(layout.columns));
  const std::size_t row_step = layout.fortran ? 1 : layout.columns;
  const std::size_t column_step = layout.fortran ? layout.rows : 1;
  for (std::size_t j = 0; count != 0 && j < layout.columns; ++j) {
    for (std::size_t i = 0; i < layout.rows; ++i) {
      T value;
      std::memcpy(&value, bytes.data() + (i * row_step + j * column_step) * sizeof(T), sizeof(T));
      values(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = static_cast<double>(value);
    }
  }
  return values;
}

Result<Matrix> convert_any(const Layout& layout, std::string_view bytes, const std::string& where) {
  const std::string& type = layout.type;
  if (type == "f8") return convert<double>(layout, bytes, where);
  if (type == "f4") return convert<float>(layout, bytes, where);
  if (type == "i1") return convert<std::int8_t>(layout, bytes, where);
  if (type == "i2") return convert<std::int16_t>(layout, bytes, where);
  if (type == "i4") return convert<std::int32_t>(layout, bytes, where);
  if (type == "i8") return convert<std::int64_t>(layout, bytes, where);
  if (type == "u1") return convert<std::uint8_t>(layout, bytes, where);
  if (type == "u2") return convert<std::uint16_t>(layout, bytes, where);
  if (type == "u4") return convert<std::uint32_t>(layout, bytes, where);
  if (type == "u8") return convert<std::uint64_t>(layout, bytes, where);
  return bad_input(fmt::format(
      "{}: has elements of type {}, expected floating-point numbers or integers. Convert it with astype(float).", where,
      type));
}

}  // namespace

std::string npy_header(std::size_t rows, std::size_t columns, bool is_vector) {
  const std::string shape = is_vector ? fmt::format("({},)", rows) : fmt::format("({}, {})", rows, columns);
  const std::string text = fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': {}, }}", shape);
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kText = kNpyHeaderBytes - kPrefix - 1;
  assert(text.size() <= kText);
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(kText + 1), '\x00'};
  header += text;
  header.append(kText - text.size(), ' ');
  header += '\n';
  return header;
}

std::string encode_npy(const NamedArray& array) {
  const RowMajorMatrix values = array.values;
  std::string bytes = npy_header(static_cast<std::size_t>(array.is_vector ? values.size() : values.rows()),
                                 static_cast<std::size_t>(values.cols()), array.is_vector);
  const std::size_t size = static_cast<std::size_t>(values.size()) * sizeof(double);
  bytes.resize(kNpyHeaderBytes + size);
  if (size != 0) std::memcpy(bytes.data() + kNpyHeaderBytes, values.data(), size);
  return bytes;
}

Status check_npy_size(std::string_view beginning, std::uint64_t size, const std::string& where) {
  const std::size_t whole = beginning.size();
  const auto layout = take_header(beginning, where);
  if (!layout.ok()) return layout.error();
  const auto numbers = numbers_in(*layout, size - (whole - beginning.size()), where);
  return numbers.ok() ? Status() : Status(numbers.error());
}

Result<NamedArray> decode_npy(std::string name, std::string_view bytes, const std::string& where,
                              std::uint64_t most_numbers) {
  auto layout = take_header(bytes, where);
  if (!layout.ok()) return layout.error();
  if (const auto numbers = numbers_in(*layout, bytes.size(), where); !numbers.ok() || *numbers > most_numbers) {
    return numbers.ok() ? bad_input(fmt::format("{}: has {} numbers, more than a model of this file's size can have.",
                                                where, *numbers))
                        : numbers.error();
  }
  auto values = convert_any(*layout, bytes, where);
  if (!values.ok()) return values.error();
  return NamedArray{std::move(name), *std::move(values), layout->is_vector};
}

}  // namespace eigenveil
