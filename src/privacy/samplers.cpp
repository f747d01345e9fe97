#include "eigenveil/privacy/samplers.hpp"

#include <cassert>

#include "gaussian_cells.hpp"

namespace eigenveil {
namespace {

// For gamma = numerator / denominator in [0, 1]: draw A_k ~ Bernoulli(gamma / k) for k = 1, 2, ... until the first
// failure, at k = K. Then P(K odd) = sum_j (-gamma)^j / j! = exp(-gamma).
// Bernoulli(gamma / k) = Bernoulli(gamma) and Bernoulli(1 / k).
bool bernoulli_exp_below_one(std::uint64_t numerator, std::uint64_t denominator, SecureRandom& random) {
  for (std::uint64_t k = 1;; ++k)
    if (random.below(denominator) >= numerator || (k > 1 && random.below(k) != 0)) return k % 2 == 1;
}

bool bernoulli_exp_one(SecureRandom& random) {
  for (std::uint64_t k = 2;; ++k)
    if (random.below(k) != 0) return k % 2 == 1;
}

}  // namespace

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

DiscreteGaussian::DiscreteGaussian(std::uint64_t sigma) : cells_(GaussianCells::get()), width_(sigma / kStep) {
  assert(sigma > 0 && sigma % kStep == 0 && sigma <= kLargestSigma);
}

std::int64_t DiscreteGaussian::operator()(SecureRandom& random) const {
  for (;;) {
    const std::uint64_t m = cells_(random);
    const std::uint64_t all = random.below(width_ << (GaussianCells::kSlotDigits + 1));
    const std::uint64_t r = all >> (GaussianCells::kSlotDigits + 1);
    const bool negative = ((all >> GaussianCells::kSlotDigits) & 1) != 0;
    if (!GaussianCells::keeps(m, r, width_, all % GaussianCells::kSlots, random)) continue;
    const std::uint64_t x = m * width_ + r;
    if (negative && x == 0) continue;  // zero must not be counted twice
    return negative ? -static_cast<std::int64_t>(x) : static_cast<std::int64_t>(x);
  }
}

}  // namespace eigenveil
