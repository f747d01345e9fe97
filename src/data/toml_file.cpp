// SPDX-License-Identifier: Apache-2.0
#include "toml_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/base/printable.hpp"
#include "file.hpp"

namespace eigenveil::data {
namespace {

/// Behind the string that begins at `at`; three quotes begin one of several lines, which may end in two more.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool lines = text.substr(at, 3) == three;
  for (at += lines ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (!lines && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    } else if (lines && text.substr(at, 3) == three) {
      at += 3;
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
      return at;
    }
  }
  return text.size();
}

Result<std::string> toml_text(const std::string& path) {
  const auto file = EIGENVEIL_TRY(File::open(path));
  if (file->size() > kLargestToml)
    return bad_input(
        fmt::format("{}: is larger than {} MiB; is it a schema, or keys of sites?", path, kLargestToml >> 20));
  std::string text(file->size(), '\0');
  EIGENVEIL_TRY(file->read_all(0, text.data(), text.size()));
  return text;
}

}  // namespace

std::size_t toml_depth(std::string_view text) {
  std::size_t open = 0;
  std::size_t dots = 0;
  std::size_t deepest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (c == '.')
      ++dots;
    else if (std::string_view("[]{}=,\n").find(c) != std::string_view::npos)
      dots = 0;
    deepest = std::max({deepest, open, dots});
    ++at;
  }
  return deepest;
}

Result<toml::table> read_toml(const std::string& path) try {
  const auto text = EIGENVEIL_TRY(toml_text(path));
  if (toml_depth(text) > kDeepestToml)
    return bad_input(fmt::format(
        "{}: has a key of more than {} dots, or brackets in each other that deep, which no file for eigenveil needs",
        path, kDeepestToml));
  return toml::parse(text, path);
} catch (const toml::parse_error& error) {
  return bad_input(fmt::format("{}: line {}: is not valid TOML: {}", path, error.source().begin.line,
                               printable(error.description())));
}

}  // namespace eigenveil::data
