// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil::data {

/// Empty, "?", and NA, NaN, null in any case.
bool is_missing(std::string_view text);

/// The number that the whole text spells, surrounding blanks and one leading plus allowed. Beyond the range of double:
/// an infinity or zero.
std::optional<double> parse_number(std::string_view text);

/// The text in quotes for a message: shortened, control characters made visible.
std::string in_quotes(std::string_view text);

/// "'a', 'b', 'c' and 17 more": enough of a list for a message.
std::string some_of(const std::vector<std::string>& names);

}  // namespace eigenveil::data
