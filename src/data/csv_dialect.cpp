// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "csv_text.hpp"

namespace eigenveil::data {

Dialect::Dialect(char delimiter) : delimiter_(delimiter) {
  const auto set = [this](char c, Class kind) { classes_[static_cast<unsigned char>(c)] = kind; };
  set(' ', kBlank);
  set('\t', kBlank);
  set('\n', kLineFeed);
  set('\r', kReturn);
  set('\0', kNulByte);
  set(delimiter, kDelimiter);
}

Scan Dialect::field(const char*& at, const char* end, std::string_view& text, std::string& scratch,
                    std::size_t& line_breaks) const {
  const char* start = skip_blanks(at);
  if (*start == '"') {
    at = start + 1;
    return quoted_field(at, end, text, scratch, line_breaks);
  }
  const char* stop = start;
  while ((*this)[*stop] <= kBlank) ++stop;
  at = stop;
  while (stop > start && (*this)[stop[-1]] == kBlank) --stop;
  text = std::string_view(start, stop - start);
  return finish(at, end);
}

Scan Dialect::quoted_field(const char*& at, const char* end, std::string_view& text, std::string& scratch,
                           std::size_t& line_breaks) const {
  const char* start = at;
  bool doubled = false;
  scratch.clear();
  while (true) {
    const auto* quote = static_cast<const char*>(std::memchr(at, '"', end - at));
    if (quote == nullptr || quote + 1 == end) return Scan::kNeedMore;
    at = quote + 1;
    if (*at != '"') break;
    scratch.append(start, at);  // with one of the two quotes
    doubled = true;
    start = ++at;
  }
  const auto tail = std::string_view(start, at - 1 - start);
  text = doubled ? std::string_view(scratch.append(tail)) : tail;
  if (text.find('\0') != std::string_view::npos) return Scan::kNul;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))) ++line_breaks;
  at = skip_blanks(at);
  return finish(at, end);
}

}  // namespace eigenveil::data
