// SPDX-License-Identifier: Apache-2.0
#include "html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "eigenveil/base/printable.hpp"

namespace eigenveil::html {
namespace {

/// 1e-06 -> 1e-6
std::string without_exponent_zeros(std::string text) {
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  if (text[e + 1] == '+') text.erase(e + 1, 1);
  const std::size_t digits = e + (text[e + 1] == '-' ? 2 : 1);
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string name(std::string_view text) { return fmt::format("<bdi>{}</bdi>", escape(text)); }

std::string exact(double value) {
  return std::isfinite(value) ? without_exponent_zeros(fmt::format("{}", value)) : value > 0 ? "infinity" : "none";
}

std::string rounded(double value) {
  constexpr double kFirstGrouped = 9999.5;
  constexpr double kLastGrouped = 1e9;
  const std::string digits = fmt::format("{:.4g}", value);
  const bool large = std::abs(value) >= kFirstGrouped && std::abs(value) < kLastGrouped;
  return large ? grouped(std::llround(std::stod(digits))) : without_exponent_zeros(digits);
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string grouped(long long value) {
  std::string digits = fmt::format("{}", value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (auto at = std::ssize(digits) - 3; at > first; at -= 3) {
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string capitalised(std::string_view word) {
  std::string text(word);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

namespace {
constexpr double kReach = 1e100;
}

double within_reach(double value) {
  if (!std::isfinite(value)) return value;  // no such number is shown at all
  return std::abs(value) < 1 / kReach ? 0 : std::clamp(value, -kReach, kReach);
}

std::optional<std::string> text_at(const nlohmann::json& manifest, std::string_view key) {
  if (!manifest.is_object()) return std::nullopt;
  const auto found = manifest.find(std::string(key));
  if (found == manifest.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<double> number_at(const nlohmann::json& manifest, std::string_view key) {
  if (!manifest.is_object()) return std::nullopt;
  const auto found = manifest.find(std::string(key));
  if (found == manifest.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::clamp(value, -kReach, kReach) : value;
}

}  // namespace eigenveil::html
