// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace eigenveil::ledger {

using Checksum = std::array<unsigned char, 32>;

/// BLAKE2b-256 under a key. Every field is preceded by its length, so that no two lists of fields are the same bytes.
class KeyedHash {
 public:
  explicit KeyedHash(std::string_view key);
  KeyedHash& field(std::string_view bytes);
  KeyedHash& number(std::uint64_t value);
  /// Bytes without a length: for one long field that is not in memory at once.
  KeyedHash& stream(std::string_view bytes);
  Checksum finish();

 private:
  crypto_generichash_state state_;
};

std::string to_hex(const Checksum& checksum);
Checksum from_hex(const std::string& text);
std::string to_bytes(const Checksum& checksum);
/// Zeros, where the bytes have another length.
Checksum from_bytes(std::string_view bytes);

}  // namespace eigenveil::ledger
