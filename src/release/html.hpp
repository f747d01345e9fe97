// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace eigenveil::html {

/// Text as it may stand in an element or a quoted attribute: nothing in it ends that, hides, or changes the order of
/// what stands beside it (base/printable.hpp, as on terminals).
std::string escape(std::string_view text);

/// A name that came from a file: escaped, and kept from reordering its surroundings with writing-direction marks.
std::string name(std::string_view text);

std::string exact(double value);       ///< shortest text that reads back as the same number: for privacy parameters
std::string rounded(double value);     ///< four significant digits
std::string percent(double share);     ///< 0.123 -> 12.3%
std::string grouped(long long value);  ///< 60000 -> 60,000

std::string capitalised(std::string_view word);  ///< correlation -> Correlation

/// Pages square, divide and take logarithms of what they show. All of that stays finite for numbers between 1e-100 and
/// 1e100: what a file has beyond is shown at that end, and what is smaller is zero.
double within_reach(double value);

/// What a manifest says under `key`, if it is there and of that kind. No number is larger than what is within reach.
std::optional<std::string> text_at(const nlohmann::json& manifest, std::string_view key);
std::optional<double> number_at(const nlohmann::json& manifest, std::string_view key);

}  // namespace eigenveil::html
