#pragma once

#include <cstdint>
#include <string>

namespace eigenveil::federation {

constexpr std::uint32_t kWireVersion = 1;
constexpr const char* kSpareRounds = "spare rounds";

/// A new study's number: 32 hexadecimal digits from the kernel.
std::string draw_study();
bool is_study(const std::string& text);

}  // namespace eigenveil::federation
