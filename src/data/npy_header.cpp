// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "npy.hpp"
#include "text.hpp"

namespace eigenveil::data {
namespace {

constexpr std::size_t kLongestDictionary = std::size_t{1} << 20;

/// The Python dictionary of a header, e.g. {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
class Dictionary {
 public:
  Dictionary(std::string_view name, std::string_view text) : name_(name), rest_(text) {}

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;

  Status parse() {
    if (!take('{')) return damaged();
    while (!take('}')) {
      const std::optional<std::string> key = string();
      if (!key || !take(':')) return damaged();
      EIGENVEIL_TRY(value(*key));
      if (!take(',') && !peek('}')) return damaged();
    }
    skip_blanks();
    if (!rest_.empty() || !descr || !fortran_order || !shape) return damaged();
    return {};
  }

 private:
  Status value(const std::string& key) {
    if (key == "descr") {
      if (peek('['))
        return bad_input(
            fmt::format("{}: is a structured array with named fields; save its columns as one plain array of "
                        "numbers",
                        name_));
      descr = string();
      return descr ? Status() : damaged();
    }
    if (key == "fortran_order") {
      fortran_order = take_word("True")    ? std::optional(true)
                      : take_word("False") ? std::optional(false)
                                           : std::nullopt;
      return fortran_order ? Status() : damaged();
    }
    if (key == "shape") {
      shape = tuple();
      return shape ? Status() : damaged();
    }
    return damaged();
  }

  Error damaged() const {
    return bad_input(fmt::format("{}: the NPY header is damaged: expected descr, fortran_order and shape", name_));
  }
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  bool peek(char c) {
    skip_blanks();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> string() {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return std::nullopt;
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::vector<std::uint64_t>> tuple() {
    if (!take('(')) return std::nullopt;
    std::vector<std::uint64_t> numbers;
    while (!take(')')) {
      skip_blanks();
      std::uint64_t number = 0;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      // A number beyond 64 bits is as impossible as the largest of them; the shape check says so.
      if (code == std::errc::result_out_of_range) number = UINT64_MAX;
      if (code == std::errc::invalid_argument) return std::nullopt;
      numbers.push_back(number);
      rest_.remove_prefix(end - rest_.data());
      if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // Python 2 wrote 3L
      if (!take(',') && !peek(')')) return std::nullopt;
    }
    return numbers;
  }

  std::string_view name_;
  std::string_view rest_;
};

Result<ElementType> element_type(const std::string& name, const std::string& descr) {
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string code = descr.substr(has_order ? 1 : 0);
  if (code.starts_with("O"))
    return bad_input(fmt::format(
        "{}: holds Python objects, not numbers; convert it, e.g. with astype(float), and save again", name));
  struct Known {
    std::string_view code;
    ElementKind kind;
    std::size_t size;
  };
  static constexpr std::array<Known, 11> kKnown = {{{"f4", ElementKind::kFloat, 4},
                                                    {"f8", ElementKind::kFloat, 8},
                                                    {"i1", ElementKind::kSigned, 1},
                                                    {"i2", ElementKind::kSigned, 2},
                                                    {"i4", ElementKind::kSigned, 4},
                                                    {"i8", ElementKind::kSigned, 8},
                                                    {"u1", ElementKind::kUnsigned, 1},
                                                    {"u2", ElementKind::kUnsigned, 2},
                                                    {"u4", ElementKind::kUnsigned, 4},
                                                    {"u8", ElementKind::kUnsigned, 8},
                                                    {"b1", ElementKind::kUnsigned, 1}}};
  for (const Known& known : kKnown)
    if (code == known.code) return ElementType{known.kind, known.size, descr[0] == '>'};
  return bad_input(
      fmt::format("{}: its elements are of type {}; expected f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 or b1: "
                  "convert it, e.g. with astype(float), and save again",
                  name, in_quotes(descr)));
}

/// Version 1 has a 2-byte length, 2 and 3 have 4 bytes; 3 only allows UTF-8 in field names.
Result<std::size_t> dictionary_length(ByteStream& stream, unsigned version) {
  std::array<unsigned char, 4> bytes{};
  if (version < 1 || version > 3)
    return bad_input(fmt::format("{}: is NPY version {}; versions 1 to 3 can be read", stream.name(), version));
  EIGENVEIL_TRY(read_exactly(stream, reinterpret_cast<char*>(bytes.data()), version == 1 ? 2 : 4, "NPY header"));
  const std::size_t length =
      bytes[0] | std::size_t{bytes[1]} << 8 | std::size_t{bytes[2]} << 16 | std::size_t{bytes[3]} << 24;
  if (length > kLongestDictionary)
    return bad_input(fmt::format("{}: announces an NPY header of {} bytes; is it damaged?", stream.name(), length));
  return length;
}

}  // namespace

Result<NpyHeader> read_npy_header(ByteStream& stream, const NpyLimits& limits) {
  const std::string& name = stream.name();
  std::array<char, 8> start{};
  EIGENVEIL_TRY(read_exactly(stream, start.data(), start.size(), "NPY header"));
  if (!std::string_view(start.data(), 6).starts_with(kNpyMagic))
    return bad_input(fmt::format("{}: does not begin like NPY; is it damaged?", name));
  const auto version = static_cast<unsigned char>(start[6]);
  const Result<std::size_t> length = dictionary_length(stream, version);
  if (!length.ok()) return length.error();
  std::string text(*length, '\0');
  EIGENVEIL_TRY(read_exactly(stream, text.data(), text.size(), "NPY header"));

  Dictionary dictionary(name, text);
  EIGENVEIL_TRY(dictionary.parse());
  const Result<ElementType> type = element_type(name, *dictionary.descr);
  if (!type.ok()) return type.error();
  const std::size_t dimensions = dictionary.shape->size();
  if (dimensions < 1 || dimensions > limits.most_dimensions)
    return bad_input(
        limits.most_dimensions == 2
            ? fmt::format("{}: has {} dimensions; expected 2 (rows x columns) or 1 (one column): reshape it", name,
                          dimensions)
            : fmt::format("{}: has {} dimensions; expected 1 to {}, its rows first", name, dimensions,
                          limits.most_dimensions));
  const Result<ArrayShape> shape = array_shape(name, *dictionary.shape, type->size, limits.no_columns);
  if (!shape.ok()) return shape.error();
  // With one row or one column both orders are the same bytes.
  const bool fortran = *dictionary.fortran_order && shape->rows > 1 && shape->columns > 1;
  return NpyHeader{*type, fortran, *shape, *std::move(dictionary.shape),
                   start.size() + (version == 1 ? 2U : 4U) + *length};
}

}  // namespace eigenveil::data
