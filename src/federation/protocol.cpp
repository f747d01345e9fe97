#include "eigenveil/federation/protocol.hpp"

#include <fmt/format.h>

#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil::federation {

std::string draw_study() {
  SecureRandom random = SecureRandom::from_kernel();
  const std::uint64_t high = random.next();
  return fmt::format("{:016x}{:016x}", high, random.next());
}

bool is_study(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace eigenveil::federation
