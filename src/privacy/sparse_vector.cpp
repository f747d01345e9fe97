// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/sparse_vector.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/privacy/samplers.hpp"

namespace eigenveil {
namespace {

constexpr std::uint64_t kDenominator = std::uint64_t{1} << 40;

// Half of epsilon for the target, half for the counts; 1 / scale = epsilon / 2, rounded down.
std::uint64_t inverse_scale(double epsilon) { return static_cast<std::uint64_t>(std::ldexp(epsilon / 2, 40)); }

}  // namespace

Status SparseVector::check(PureEpsilon epsilon) {
  if (epsilon < 0x1p-30) return usage_error(fmt::format("a sparse-vector epsilon of {} is too small", epsilon.value()));
  return {};
}

Result<Released<std::size_t>> SparseVector::first_at_most(const PrivateCounts& counts, std::int64_t target,
                                                          PureEpsilon epsilon, SecureRandom& random) {
  if (counts.values.empty()) return internal_error("the sparse vector needs at least one count");
  const std::size_t last = counts.values.size() - 1;
  EIGENVEIL_TRY(check(epsilon));
  const DiscreteLaplace draw(kDenominator, inverse_scale(epsilon));
  const Int128 noisy_target = target + draw(random);
  for (std::size_t j = 0; j < last; ++j)
    if (counts.values[j] + draw(random) <= noisy_target) return Released<std::size_t>(j);
  return Released<std::size_t>(last);
}

}  // namespace eigenveil
