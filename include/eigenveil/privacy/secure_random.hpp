// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

namespace federation {
class StudyNoise;
}

/// A stream of random bits: ChaCha20 under a key from the kernel. Not copyable, so that no noise is used twice.
class SecureRandom {
 public:
  static SecureRandom from_kernel();
  /// The same stream for the same seed. Whoever knows the seed can subtract the noise: a release made with it is
  /// stamped NOT PRIVATE.
  static SecureRandom insecure(std::uint64_t seed);

  SecureRandom(SecureRandom&& other) noexcept;
  SecureRandom& operator=(SecureRandom&&) = delete;
  ~SecureRandom();

  bool secure() const { return secure_; }
  /// A stream of its own, under a key that this one draws.
  SecureRandom fork();

  std::uint64_t next() {
    if (position_ == kWords) refill();
    return words_[position_++];
  }

  /// Uniform on {0, ..., n - 1}, n >= 1, exactly (Lemire 2019: samplers.proof.md).
  std::uint64_t below(std::uint64_t n) {
    UInt128 product = UInt128{next()} * n;
    if (static_cast<std::uint64_t>(product) < n) [[unlikely]] {
      const std::uint64_t surplus = (0 - n) % n;  // 2^64 mod n
      while (static_cast<std::uint64_t>(product) < surplus) product = UInt128{next()} * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  static constexpr std::size_t kWords = 2048;  // 16 KiB per refill: libsodium's full speed
  friend class federation::StudyNoise;         // whose keys are derived, each for one stream: federation/masks.proof.md
  static SecureRandom from_key(const std::array<unsigned char, 32>& key);
  SecureRandom(const std::array<unsigned char, 32>& key, bool secure);
  void refill();

  std::array<unsigned char, 32> key_;
  std::uint64_t block_ = 0;
  std::size_t position_ = kWords;
  bool secure_;
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace eigenveil
