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

Status check_encoder(const EncoderIdentity& encoder, const std::string& sha256) {
  if (sha256.empty() || sha256 == encoder.sha256) return {};
  return bad_input(fmt::format(
      "{}: is not the encoder that the model was fitted with (SHA-256 {}, the model's {}); name the file that it was",
      printable(encoder.file), encoder.sha256, printable(sha256, 64)));
}

}  // namespace eigenveil
