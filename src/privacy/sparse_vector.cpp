// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/sparse_vector.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/privacy/samplers.hpp"

namespace eigenveil {
namespace {

// Counts, target and noise are in 2^-20, whether or not rows share weights.
constexpr int kBits = 20;
constexpr std::uint64_t kNumerator = std::uint64_t{1} << 54;

// Half of epsilon for the target, half for the counts: 1 / scale = 2^-20 epsilon / 2 = s / 2^54, s rounded down.
std::uint64_t inverse_scale(double epsilon) { return static_cast<std::uint64_t>(std::ldexp(epsilon, 54 - kBits - 1)); }

}  // namespace

Status SparseVector::check(PureEpsilon epsilon) {
  if (epsilon < 0x1p-30) return usage_error(fmt::format("a sparse-vector epsilon of {} is too small", epsilon.value()));
  return {};
}

Result<Released<std::size_t>> SparseVector::first_at_most(const PrivateCounts& counts, std::int64_t target,
                                                          PureEpsilon epsilon, SecureRandom& random) {
  if (counts.values.empty()) return internal_error("the sparse vector needs at least one count");
  if (counts.fraction < 0 || counts.fraction > kBits) return internal_error("counts are in 2^-20 at most");
  const std::size_t last = counts.values.size() - 1;
  EIGENVEIL_TRY(check(epsilon));
  const DiscreteLaplace draw(kNumerator, inverse_scale(epsilon));
  // Half a row more: whole counts and targets never tie, so that hardly any noise hardly matters.
  const Int128 noisy_target = (Int128{target} << kBits) + (Int128{1} << (kBits - 1)) + draw(random);
  for (std::size_t j = 0; j < last; ++j)
    if ((Int128{counts.values[j]} << (kBits - counts.fraction)) + draw(random) <= noisy_target)
      return Released<std::size_t>(j);
  return Released<std::size_t>(last);
}

}  // namespace eigenveil
