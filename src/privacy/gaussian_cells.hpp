// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// Draws m in {0, ..., 4095} with probability proportional to exp(-m^2 / 8192), exactly: the cell, a 64th of a
/// deviation wide, that a Gaussian falls into (samplers.proof.md).
class GaussianCells {
 public:
  static constexpr std::uint64_t kCells = 4096;
  static constexpr int kSlotDigits = 13;
  static constexpr std::uint64_t kSlots = 1U << kSlotDigits;
  static const GaussianCells& get();

  std::uint64_t operator()(SecureRandom& random) const {
    const std::uint64_t word = random.next();
    if (word == UINT64_MAX) [[unlikely]]
      return decide(word, random);
    std::uint64_t m = guide_[word >> 56];
    while (word >= starts_[m + 1]) ++m;
    if (word == starts_[m]) [[unlikely]]
      return decide(word, random);
    return m;
  }

  /// The cell of a uniform number whose first 64 binary digits are `word`: draws more digits until they tell.
  static std::uint64_t decide(std::uint64_t word, SecureRandom& random);

  /// True with probability exp(-g), exactly, where g = (r / width) (2 m + r / width) / 8192 <= 1: how much rarer place
  /// r in cell m is than the cell's start. `slot` is uniform on {0, ..., 8191}. As samplers.cpp does it for any g, with
  /// Bernoulli(g) = Bernoulli((2 m + r / width) / 8192) and Bernoulli(r / width).
  static bool keeps(std::uint64_t m, std::uint64_t r, std::uint64_t width, std::uint64_t slot, SecureRandom& random) {
    std::uint64_t k = 1;
    while (slot <= 2 * m && (slot < 2 * m || random.below(width) < r) && random.below(width) < r &&
           (k == 1 || random.below(k) == 0)) {
      ++k;
      slot = random.next() >> (64 - kSlotDigits);
    }
    return k % 2 == 1;
  }

  /// The first 64 digits of P(a cell before m), m = 0, 1, ...: a word equal to them does not tell on which side of that
  /// probability its number lies. As far as these digits are not all ones.
  const std::vector<std::uint64_t>& starts() const { return starts_; }

 private:
  GaussianCells();
  std::vector<std::uint64_t> starts_;
  std::array<std::uint16_t, 256> guide_{};  // by a word's first 8 digits: the first cell it can be in
};

}  // namespace eigenveil
