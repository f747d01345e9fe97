// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// Draws x in Z with probability proportional to exp(-|x| / scale), exactly and on all of Z (Canonne, Kamath, Steinke
/// 2020, algorithm 2): whatever it is added to must be wide enough, or be cut only after the sum was made.
class DiscreteLaplace {
 public:
  /// scale = scale_numerator / scale_denominator, the numerator at most 2^54
  DiscreteLaplace(std::uint64_t scale_numerator, std::uint64_t scale_denominator = 1);
  Int128 operator()(SecureRandom& random) const;

 private:
  std::uint64_t t_;  // scale = t / s
  std::uint64_t s_;
};

class GaussianCells;

/// Draws x in Z with probability proportional to exp(-x^2 / (2 sigma^2)), exactly, for a sigma that is a multiple of 64
/// (samplers.proof.md). Beyond 64 sigma nothing is drawn.
class DiscreteGaussian {
 public:
  static constexpr std::uint64_t kStep = 64;
  static constexpr std::uint64_t kLargestSigma = std::uint64_t{1} << 54;
  explicit DiscreteGaussian(std::uint64_t sigma);
  std::int64_t operator()(SecureRandom& random) const;

 private:
  const GaussianCells& cells_;
  std::uint64_t width_;  // of a cell: sigma / 64
};

}  // namespace eigenveil
