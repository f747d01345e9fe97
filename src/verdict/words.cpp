// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/verdict/standing.hpp"

namespace eigenveil {
namespace {

/// "PC3", "PC1-3"
std::string run(std::string_view number, std::size_t first, std::size_t last) {
  return first == last ? fmt::format("{}{}", number, first) : fmt::format("{}{}-{}", number, first, last);
}

bool alike(const Judged& one, const Judged& other) {
  if (one.standing != other.standing) return false;
  return one.standing != Standing::kPlane || (one.first == other.first && one.last == other.last);
}

std::string of_run(std::string_view number, const Judged& judged, std::size_t first, std::size_t last,
                   std::size_t count) {
  std::string who = run(number, first, last);
  const bool one = first == last;
  const char* space = judged.last == judged.first + 1 ? "plane" : "space";
  switch (judged.standing) {
    case Standing::kHolds:
      return fmt::format("{} {}", who, one ? "holds" : "hold");
    case Standing::kPlane:
      if (judged.first == first && judged.last == last) return fmt::format("{} only as a {}", who, space);
      return fmt::format("{} only within the {} of {}", who, space, run(number, judged.first, judged.last));
    case Standing::kWeak:
      return fmt::format("{} {} more than noise, but {} not determined", who, one ? "is" : "are",
                         one ? "its direction is" : "their directions are");
    case Standing::kNoise:
      if (first == 1) return fmt::format("{} {} noise", who, one ? "is" : "are");
      return last == count && !one ? "the rest is noise" : fmt::format("{} {} noise", who, one ? "is" : "are");
  }
  return who;
}

}  // namespace

std::string_view name(Standing standing) {
  switch (standing) {
    case Standing::kNoise:
      return "noise";
    case Standing::kWeak:
      return "weak";
    case Standing::kPlane:
      return "plane";
    case Standing::kHolds:
      return "holds";
  }
  return "";
}

std::string verdict_in_words(const std::vector<Judged>& judged, std::string_view number) {
  std::string words;
  for (std::size_t i = 0; i < judged.size();) {
    std::size_t end = i + 1;
    while (end < judged.size() && alike(judged[end], judged[i])) ++end;
    if (!words.empty()) words += ", ";
    words += of_run(number, judged[i], i + 1, end, judged.size());
    i = end;
  }
  return words.empty() ? words : words + ".";
}

}  // namespace eigenveil
