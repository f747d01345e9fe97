// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/printable.hpp"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <limits>

namespace eigenveil {
namespace {

constexpr UChar32 kBrailleBlank = 0x2800;  // a symbol by its category, a space by its looks
constexpr int kMostMarks = 4;

bool is_mark(UChar32 c) { return (U_GET_GC_MASK(c) & (U_GC_MN_MASK | U_GC_MC_MASK)) != 0; }

bool is_visible(UChar32 c) {
  constexpr std::uint32_t kShown = U_GC_L_MASK | U_GC_MN_MASK | U_GC_MC_MASK | U_GC_N_MASK | U_GC_P_MASK | U_GC_S_MASK;
  return c == ' ' || ((U_GET_GC_MASK(c) & kShown) != 0 && c != kBrailleBlank &&
                      !u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT));
}

std::string escape_bytes(std::string_view bytes) {
  std::string escaped;
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

// Strict: negative for overlong forms, surrogates and everything else that is ill-formed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // inside ICU's macro
UChar32 next_character(const char* text, std::int32_t& at, std::int32_t size) {
  UChar32 c = 0;
  U8_NEXT(text, at, size, c);
  return c;
}
#pragma GCC diagnostic pop

// What is escaped beside what nobody sees, and what is not.
struct Manner {
  char delimiter = 0;  // escaped too
  bool lines = false;  // line feeds, tabs and backslashes stay
};

// One character, or the bytes of an ill-formed one, of which c is negative. `marks`: how many combining ones stand
// before it.
std::string shown(UChar32 c, std::string_view bytes, int marks, Manner manner) {
  if (manner.lines && (c == '\n' || c == '\t' || c == '\\')) return std::string(bytes);
  if (c == '\\' || (manner.delimiter != 0 && c == manner.delimiter)) return {'\\', static_cast<char>(c)};
  if (c < 0x20 || c == 0x7f) return escape_bytes(bytes);
  if (is_visible(c) && !(is_mark(c) && marks >= kMostMarks)) return std::string(bytes);
  return fmt::format("\\u{{{:04x}}}", static_cast<std::uint32_t>(c));
}

std::string shown(std::string_view text, std::size_t most, Manner manner) {
  std::string out;
  const auto size =
      static_cast<std::int32_t>(std::min<std::size_t>(text.size(), std::numeric_limits<std::int32_t>::max()));
  int marks = kMostMarks;  // nothing stands before the first character that a mark could change
  for (std::int32_t at = 0; at < size;) {
    const std::int32_t begin = at;
    const UChar32 c = next_character(text.data(), at, size);
    const std::string piece = shown(c, text.substr(begin, at - begin), marks, manner);
    marks = c >= 0 && is_mark(c) ? marks + 1 : 0;
    if (out.size() + piece.size() > most) return out + fmt::format("... ({} bytes more)", text.size() - begin);
    out += piece;
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) { return shown(text, most, {}); }

std::string printable_lines(std::string_view text) {
  return shown(text, std::numeric_limits<std::size_t>::max(), {.lines = true});
}

std::string quote(std::string_view text, std::size_t most) {
  return "'" + shown(text, most, {.delimiter = '\''}) + "'";
}

}  // namespace eigenveil
