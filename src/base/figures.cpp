// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/figures.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

std::string plain(double value) {
  constexpr double kLeast = 1e-9, kFixed = 1e-4;
  const double size = std::abs(value);
  if (size >= kFixed || value == 0 || !std::isfinite(value)) return fmt::format("{:.6g}", value);
  if (size >= kLeast) {
    // As many digits as six significant ones need, without the zeros at their end.
    std::string text = fmt::format("{:.{}f}", value, 5 - static_cast<int>(std::floor(std::log10(size))));
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  }
  std::string text = fmt::format("{:.6g}", value);
  if (const auto zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

std::string chance(double probability) {
  constexpr double kLeast = 1e-9, kMost = 0.1;
  if (!(probability >= kLeast && probability <= kMost)) return plain(probability);
  std::string digits = fmt::format("{:.0f}", 1 / probability);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return fmt::format("{} (1 in {})", plain(probability), digits);
}

}  // namespace eigenveil
