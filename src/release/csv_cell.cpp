// SPDX-License-Identifier: Apache-2.0
#include "csv_cell.hpp"

#include <charconv>
#include <string_view>

namespace eigenveil {
namespace {

bool is_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [stop, failure] = std::from_chars(begin, end, value);
  return failure == std::errc() && stop == end;
}

bool is_formula(const std::string& text) {
  constexpr std::string_view kStarts = "=+-@\t\r";
  return !text.empty() && kStarts.find(text[0]) != std::string_view::npos && !is_number(text);
}

}  // namespace

std::string csv_cell(const std::string& text) {
  std::string cell = is_formula(text) ? "'" + text : text;
  if (cell.find_first_of(",;\"\t\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace eigenveil
