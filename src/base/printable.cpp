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

// `delimiter`: a character that is escaped too; 0: none.
std::string shown(std::string_view text, std::size_t most, char delimiter) {
  std::string out;
  const auto size =
      static_cast<std::int32_t>(std::min<std::size_t>(text.size(), std::numeric_limits<std::int32_t>::max()));
  int marks = kMostMarks;  // nothing stands before the first character that a mark could change
  for (std::int32_t at = 0; at < size;) {
    const std::int32_t begin = at;
    const UChar32 c = next_character(text.data(), at, size);
    const auto bytes = text.substr(begin, at - begin);
    std::string piece;
    const bool mark = c >= 0 && is_mark(c);
    if (c == '\\' || (delimiter != 0 && c == delimiter))
      piece = std::string{'\\', static_cast<char>(c)};
    else if (c < 0x20 || c == 0x7f)  // ill-formed too
      piece = escape_bytes(bytes);
    else if (is_visible(c) && !(mark && marks >= kMostMarks))
      piece = bytes;
    else
      piece = fmt::format("\\u{{{:04x}}}", static_cast<std::uint32_t>(c));
    marks = mark ? marks + 1 : 0;
    if (out.size() + piece.size() > most) return out + fmt::format("... ({} bytes more)", text.size() - begin);
    out += piece;
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) { return shown(text, most, 0); }

std::string quote(std::string_view text, std::size_t most) { return "'" + shown(text, most, '\'') + "'"; }

}  // namespace eigenveil
