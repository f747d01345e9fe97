// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/sha256.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <array>

#include "file.hpp"

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
