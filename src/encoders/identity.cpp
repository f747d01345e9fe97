// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/identity.hpp"

#include <fmt/format.h>

#include "eigenveil/base/printable.hpp"

namespace eigenveil {
std::pair<std::string, std::string> split_encoder(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string> joined_encoders(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ':') {  // a file, and whatever its name holds
      parts.back() += text.substr(at);
      break;
    }
    if (text[at] == '+')
      parts.emplace_back();
    else
      parts.back() += text[at];
  }
  return parts;
}

bool names_a_file(const std::string& text) { return text.find(':') != std::string::npos; }

Status check_encoder(const EncoderIdentity& encoder, const std::string& sha256) {
  if (sha256.empty() || sha256 == encoder.sha256) return {};
  return bad_input(fmt::format(
      "{}: is not the encoder that the model was fitted with (SHA-256 {}, the model's {}); name the file that it was",
      printable(encoder.file), encoder.sha256, printable(sha256, 64)));
}

}  // namespace eigenveil
