// SPDX-License-Identifier: Apache-2.0
#include "keyed_hash.hpp"

#include <algorithm>

namespace eigenveil::ledger {
namespace {

const unsigned char* octets(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

KeyedHash::KeyedHash(std::string_view key) : state_{} {
  crypto_generichash_init(&state_, octets(key), key.size(), sizeof(Checksum));
}

KeyedHash& KeyedHash::stream(std::string_view bytes) {
  crypto_generichash_update(&state_, octets(bytes), bytes.size());
  return *this;
}

KeyedHash& KeyedHash::number(std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return stream({bytes.data(), bytes.size()});
}

KeyedHash& KeyedHash::field(std::string_view bytes) { return number(bytes.size()).stream(bytes); }

Checksum KeyedHash::finish() {
  Checksum checksum{};
  crypto_generichash_final(&state_, checksum.data(), checksum.size());
  return checksum;
}

std::string to_hex(const Checksum& checksum) {
  std::string text(2 * checksum.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), checksum.data(), checksum.size());
  text.pop_back();
  return text;
}

Checksum from_hex(const std::string& text) {
  Checksum checksum{};
  sodium_hex2bin(checksum.data(), checksum.size(), text.data(), text.size(), nullptr, nullptr, nullptr);
  return checksum;
}

std::string to_bytes(const Checksum& checksum) { return {checksum.begin(), checksum.end()}; }

Checksum from_bytes(std::string_view bytes) {
  Checksum checksum{};
  if (bytes.size() == checksum.size()) std::copy(bytes.begin(), bytes.end(), checksum.begin());
  return checksum;
}

}  // namespace eigenveil::ledger
