#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

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

  std::uint64_t next() {
    if (position_ == kWords) refill();
    return words_[position_++];
  }

  /// Uniform on {0, ..., n - 1}, n >= 1, by rejection: exact.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t mask = mask_of(n - 1);
    for (;;)
      if (const std::uint64_t x = next() & mask; x < n) return x;
  }
  UInt128 below(UInt128 n) {
    if (n <= UINT64_MAX) return below(static_cast<std::uint64_t>(n));
    const std::uint64_t high_mask = mask_of(static_cast<std::uint64_t>((n - 1) >> 64));
    for (;;)
      if (const UInt128 x = (static_cast<UInt128>(next() & high_mask) << 64) | next(); x < n) return x;
  }

 private:
  static constexpr std::size_t kWords = 2048;  // 16 KiB a refill: libsodium's full speed
  SecureRandom(const std::array<unsigned char, 32>& key, bool secure);
  void refill();
  static std::uint64_t mask_of(std::uint64_t largest) {
    return largest == 0 ? 0 : UINT64_MAX >> std::countl_zero(largest);
  }

  std::array<unsigned char, 32> key_;
  std::uint64_t block_ = 0;
  std::size_t position_ = kWords;
  bool secure_;
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace eigenveil
