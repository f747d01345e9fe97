// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/samplers.hpp"

#include <cassert>

#include "gaussian_cells.hpp"
#include "laplace.hpp"

namespace eigenveil {

DiscreteLaplace::DiscreteLaplace(std::uint64_t scale_numerator, std::uint64_t scale_denominator)
    : t_(scale_numerator), s_(scale_denominator) {
  assert(t_ > 0 && s_ > 0 && t_ <= DiscreteGaussian::kLargestSigma);
}

Int128 DiscreteLaplace::operator()(SecureRandom& random) const { return laplace::draw(t_, s_, random); }

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
