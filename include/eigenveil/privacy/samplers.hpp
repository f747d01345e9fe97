#pragma once

#include <cstdint>

#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// True with probability exp(-numerator / denominator), exactly. Integers only (Canonne, Kamath, Steinke 2020,
/// algorithm 1).
bool bernoulli_exp(UInt128 numerator, UInt128 denominator, SecureRandom& random);

/// Draws x in Z with probability proportional to exp(-|x| * inverse_numerator / inverse_denominator), exactly
/// (ibid., algorithm 2): scale = inverse_denominator / inverse_numerator.
class DiscreteLaplace {
 public:
  /// The largest magnitude drawn is 2^62; scale must not exceed 2^54, where that cuts off less than e^-256.
  DiscreteLaplace(std::uint64_t scale_numerator, std::uint64_t scale_denominator = 1);
  std::int64_t operator()(SecureRandom& random) const;

 private:
  std::uint64_t t_;  // scale = t / s
  std::uint64_t s_;
};

/// Draws x in Z with probability proportional to exp(-x^2 / (2 sigma^2)), sigma = numerator / denominator, exactly
/// (ibid., algorithm 3).
class DiscreteGaussian {
 public:
  static constexpr std::uint64_t kLargestSigma = std::uint64_t{1} << 54;
  explicit DiscreteGaussian(std::uint64_t sigma_numerator, std::uint64_t sigma_denominator = 1);
  std::int64_t operator()(SecureRandom& random) const;

 private:
  std::uint64_t p_;  // sigma = p / q
  std::uint64_t q_;
  DiscreteLaplace proposal_;
  std::uint64_t t_;  // scale of the proposal
  UInt128 denominator_;
};

}  // namespace eigenveil
