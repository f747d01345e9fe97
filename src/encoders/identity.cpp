#include "eigenveil/encoders/identity.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <array>

#include "../data/file.hpp"
#include "eigenveil/base/printable.hpp"

namespace eigenveil {
namespace {

std::string hex_of(crypto_hash_sha256_state& state) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256_final(&state, hash.data());
  std::string text;
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

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

std::string sha256_of(const std::string& bytes) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex_of(state);
}

Result<std::string> sha256_of_files(const std::vector<std::string>& paths) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<char> block(std::size_t{1} << 20);
  for (const std::string& path : paths) {
    const auto file = EIGENVEIL_TRY(data::File::open(path));
    for (std::uint64_t at = 0; at < file->size();) {
      const auto got = EIGENVEIL_TRY(file->read_some(at, block.data(), block.size()));
      if (got == 0) break;
      crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(block.data()), got);
      at += got;
    }
  }
  return hex_of(state);
}

}  // namespace eigenveil
