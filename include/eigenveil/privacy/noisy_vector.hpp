// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>

#include "eigenveil/privacy/gaussian_mechanism.hpp"

namespace eigenveil {

/// A private vector of public length about which nothing is known but that it was scaled to a norm of at most `clip`:
/// the gradient of a whole batch. Integers of step clip 2^-40 and Gaussian noise: noisy_vector.proof.md.
/// Neighbours can turn it right round, so they are up to 2 clip apart, whatever the batch.
class NoisyVector {
 public:
  static constexpr int kBits = 40;
  /// 2 clip, in steps. Deviation of the noise = multiplier * 2 clip.
  static Sensitivity sensitivity() { return Sensitivity(0x1p41); }
  static double unit(double clip) { return std::ldexp(clip, -kBits); }

  /// What could not be answered `answers` times, before anything is charged.
  static Status check(double clip, std::size_t entries, long long answers);

  /// Scaled to norm <= clip and truncated: integers with squared norm <= 2^80. Refuses what is not finite.
  static Result<PrivateSum> on_lattice(std::span<const double> v, double clip);

  /// v, clipped, with its noise: as many rows as v has entries, one column.
  static Result<Released<Matrix>> release(std::span<const double> v, double clip, NoiseMultiplier multiplier,
                                          SecureRandom& random);
};

/// A sum over private rows of vectors of public length, each scaled to a norm of at most `clip` by itself: the gradient
/// of a loss that is a sum over rows. One row more moves it by `clip`, not by twice that: noisy_vector.proof.md. A
/// row's vector must be computed from this row alone.
class ClippedSum {
 public:
  ClippedSum(std::size_t entries, double clip);

  /// clip, in steps. Deviation of the noise = multiplier * clip.
  static Sensitivity sensitivity() { return Sensitivity(0x1p40); }

  /// One row's vector, clipped. One that is not finite counts as zero: nobody learns of it.
  void add(std::span<const double> v);

  /// The sum with its noise: as many rows as there are entries, one column.
  Result<Released<Matrix>> release(NoiseMultiplier multiplier, SecureRandom& random) &&;

 private:
  double clip_;
  std::size_t rows_ = 0;
  PrivateSum sum_;
};

}  // namespace eigenveil
