// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/secure_random.hpp"

#include <sodium.h>

#include <cstdlib>
#include <cstring>

namespace eigenveil {
namespace {

// libsodium refuses to start only when the kernel has no randomness to give: nothing private can be done then.
void start_sodium() {
  if (sodium_init() < 0) std::abort();
}

}  // namespace

SecureRandom::SecureRandom(const std::array<unsigned char, 32>& key, bool secure) : key_(key), secure_(secure) {}

SecureRandom::SecureRandom(SecureRandom&& other) noexcept
    : key_(other.key_), block_(other.block_), position_(other.position_), secure_(other.secure_), words_(other.words_) {
  // The moved-from object gets a key of its own: even a mistaken use of it repeats no noise.
  randombytes_buf(other.key_.data(), other.key_.size());
  other.position_ = kWords;
}

SecureRandom::~SecureRandom() {
  sodium_memzero(key_.data(), key_.size());
  sodium_memzero(words_.data(), sizeof(words_));
}

SecureRandom SecureRandom::from_kernel() {
  start_sodium();
  std::array<unsigned char, crypto_stream_chacha20_KEYBYTES> key{};
  randombytes_buf(key.data(), key.size());
  return {key, true};
}

SecureRandom SecureRandom::insecure(std::uint64_t seed) {
  start_sodium();
  std::array<unsigned char, 32> key{};
  std::memcpy(key.data(), &seed, sizeof(seed));
  return {key, false};
}

SecureRandom SecureRandom::from_key(const std::array<unsigned char, 32>& key) {
  start_sodium();
  return {key, true};
}

SecureRandom SecureRandom::fork() {
  std::array<unsigned char, 32> key{};
  for (std::size_t i = 0; i < key.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = next();
    std::memcpy(key.data() + i, &word, sizeof(word));
  }
  SecureRandom stream(key, secure_);
  sodium_memzero(key.data(), key.size());
  return stream;
}

void SecureRandom::refill() {
  std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
  std::memcpy(nonce.data(), &block_, sizeof(block_));
  ++block_;
  crypto_stream_chacha20(reinterpret_cast<unsigned char*>(words_.data()), sizeof(words_), nonce.data(), key_.data());
  position_ = 0;
}

}  // namespace eigenveil
