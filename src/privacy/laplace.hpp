// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "eigenveil/base/types.hpp"

/// The draws behind DiscreteLaplace, for any source of exact uniform numbers: samplers.proof.md.
namespace eigenveil::laplace {

// For gamma = numerator / denominator in [0, 1]: draw A_k ~ Bernoulli(gamma / k) for k = 1, 2, ... until the first
// failure, at k = K. Then P(K odd) = sum_j (-gamma)^j / j! = exp(-gamma).
// Bernoulli(gamma / k) = Bernoulli(gamma) and Bernoulli(1 / k).
template <class Random>
bool bernoulli_exp_below_one(std::uint64_t numerator, std::uint64_t denominator, Random& random) {
  for (std::uint64_t k = 1;; ++k)
    if (random.below(denominator) >= numerator || (k > 1 && random.below(k) != 0)) return k % 2 == 1;
}

template <class Random>
bool bernoulli_exp_one(Random& random) {
  for (std::uint64_t k = 2;; ++k)
    if (random.below(k) != 0) return k % 2 == 1;
}

/// Scale t / s, t at most 2^54. No magnitude is too large: t v stays below 2^118 whatever v is.
template <class Random>
Int128 draw(std::uint64_t t, std::uint64_t s, Random& random) {
  for (;;) {
    const std::uint64_t u = random.below(t);
    if (!bernoulli_exp_below_one(u, t, random)) continue;
    std::uint64_t v = 0;
    while (bernoulli_exp_one(random)) ++v;
    const auto x = static_cast<Int128>((u + UInt128{t} * v) / s);
    const bool negative = random.below(2) != 0;
    if (negative && x == 0) continue;  // zero must not be counted twice
    return negative ? -x : x;
  }
}

}  // namespace eigenveil::laplace
