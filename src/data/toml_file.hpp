// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil::data {

constexpr std::uint64_t kLargestToml = std::uint64_t{64} << 20;
/// Far more than a schema, a site's file or a list of keys has.
constexpr std::size_t kDeepestToml = 16;

/// The most dots in one key, or brackets that are open at once, outside of strings and comments: n of them make a tree
/// of at most (n + 1) (n + 2) levels.
std::size_t toml_depth(std::string_view text);

/// The only way in for TOML. toml++ knows no limit for dotted keys and destroys its tree by recursion, so what is too
/// deep is refused before there is a tree. Every refusal names the file.
Result<toml::table> read_toml(const std::string& path);

}  // namespace eigenveil::data
