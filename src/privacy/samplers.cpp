#include "eigenveil/privacy/samplers.hpp"

#include <cassert>

namespace eigenveil {
namespace {

// For gamma = numerator / denominator in [0, 1]: draw A_k ~ Bernoulli(gamma / k) for k = 1, 2, ... until the first
// failure, at k = K. Then P(K odd) = sum_j (-gamma)^j / j! = exp(-gamma).
// Bernoulli(gamma / k) = Bernoulli(gamma) and Bernoulli(1 / k).
template <class UInt>
bool bernoulli_exp_below_one(UInt numerator, UInt denominator, SecureRandom& random) {
  for (std::uint64_t k = 1;; ++k)
    if (random.below(denominator) >= numerator || random.below(k) != 0) return k % 2 == 1;
}

bool bernoulli_exp_one(SecureRandom& random) {
  for (std::uint64_t k = 2;; ++k)
    if (random.below(k) != 0) return k % 2 == 1;
}

}  // namespace

bool bernoulli_exp(UInt128 numerator, UInt128 denominator, SecureRandom& random) {
  // exp(-gamma) = exp(-1)^floor(gamma) * exp(-(gamma - floor(gamma)))
  while (numerator >= denominator) {
    if (!bernoulli_exp_one(random)) return false;
    numerator -= denominator;
  }
  return bernoulli_exp_below_one(numerator, denominator, random);
}

DiscreteLaplace::DiscreteLaplace(std::uint64_t scale_numerator, std::uint64_t scale_denominator)
    : t_(scale_numerator), s_(scale_denominator) {
  assert(t_ > 0 && s_ > 0 && t_ <= DiscreteGaussian::kLargestSigma);
}

std::int64_t DiscreteLaplace::operator()(SecureRandom& random) const {
  constexpr std::uint64_t kMostSteps = 256;
  for (;;) {
    const std::uint64_t u = random.below(t_);
    if (!bernoulli_exp_below_one(u, t_, random)) continue;
    std::uint64_t v = 0;
    while (v < kMostSteps && bernoulli_exp_one(random)) ++v;
    if (v == kMostSteps) continue;
    const std::uint64_t x = (u + t_ * v) / s_;
    const bool negative = (random.next() & 1) != 0;
    if (negative && x == 0) continue;  // zero must not be counted twice
    return negative ? -static_cast<std::int64_t>(x) : static_cast<std::int64_t>(x);
  }
}

DiscreteGaussian::DiscreteGaussian(std::uint64_t sigma_numerator, std::uint64_t sigma_denominator)
    : p_(sigma_numerator),
      q_(sigma_denominator),
      proposal_(q_ == 1 ? p_ : p_ / q_ + 1),
      t_(q_ == 1 ? p_ : p_ / q_ + 1),
      denominator_(q_ == 1 ? 2 * UInt128{p_} * p_ : 2 * UInt128{p_} * p_ * t_ * t_ * q_ * q_) {
  // With a fractional sigma every factor stays small, so that the products below fit 128 bits.
  assert(p_ > 0 && q_ > 0 && p_ <= kLargestSigma && (q_ == 1 || (p_ < (1U << 12) && q_ < (1U << 8))));
}

std::int64_t DiscreteGaussian::operator()(SecureRandom& random) const {
  for (;;) {
    const std::int64_t y = proposal_(random);
    const auto magnitude = static_cast<std::uint64_t>(y < 0 ? -y : y);
    // Accept with probability exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)); for an integer sigma, t = sigma.
    const UInt128 left = q_ == 1 ? UInt128{magnitude} : UInt128{magnitude} * t_ * q_ * q_;
    const UInt128 right = q_ == 1 ? UInt128{p_} : UInt128{p_} * p_;
    const UInt128 distance = left > right ? left - right : right - left;
    if (bernoulli_exp(distance * distance, denominator_, random)) return y;
  }
}

}  // namespace eigenveil
