// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/noisy_vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

constexpr Int128 kNormBound = Int128{1} << NoisyVector::kBits;
constexpr double kMostIntegers = 0x1p31;  // of a plan: discrete.proof.md, with deviations of at least 2^40.5

// Of numbers below 2^63
Int128 squared_norm(const std::vector<Int128>& u) {
  Int128 sum = 0;
  for (const Int128 x : u) sum += Int128{static_cast<std::int64_t>(x)} * static_cast<std::int64_t>(x);
  return sum;
}

}  // namespace

Status NoisyVector::check(double clip, std::size_t entries, long long answers) {
  if (!(clip >= 1e-100 && clip <= 1e100))
    return usage_error(fmt::format("`clip` must be finite and positive (1e-100 to 1e100), but is {}", clip));
  if (entries == 0) return internal_error("a vector without entries has no noise");
  if (static_cast<double>(entries) * static_cast<double>(answers) > kMostIntegers)
    return usage_error(
        fmt::format("{} steps of {} parameters are more noisy numbers than the accounting covers (2^31); take fewer "
                    "steps or train fewer parameters",
                    answers, entries));
  return {};
}

Result<PrivateSum> NoisyVector::on_lattice(std::span<const double> v, double clip) {
  double largest = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!std::isfinite(v[i]))
      return bad_input(
          fmt::format("a gradient is not finite (entry {} of {} is {}): the loss overflowed or divided by "
                      "zero; lower the learning rate, or look for such values in the data",
                      i + 1, v.size(), v[i]));
    largest = std::max(largest, std::fabs(v[i]));
  }
  PrivateSum sum{PrivateSum::Layout::kPlain, v.size(), 1, sensitivity(), unit(clip), std::vector<Int128>(v.size())};
  if (largest == 0) return sum;

  // ||v|| = largest * s with s in [1, sqrt(entries)]: neither overflows nor underflows
  double squares = 0;
  for (const double x : v) squares += (x / largest) * (x / largest);
  const double s = std::sqrt(squares);
  // u_i = trunc(v_i / max(clip, ||v||) * 2^40)
  const bool clipped = largest > clip / s;
  const double divisor = clipped ? largest : clip;
  const double factor = clipped ? 0x1p40 / s : 0x1p40;
  for (std::size_t i = 0; i < v.size(); ++i) sum.values[i] = static_cast<std::int64_t>(v[i] / divisor * factor);

  // Rounding may have left the norm a little too long; every round makes it shorter.
  for (double excess = 0x1p-40; squared_norm(sum.values) > kNormBound * kNormBound; excess *= 2)
    for (Int128& x : sum.values) x = static_cast<std::int64_t>(static_cast<double>(x) * (1.0 - std::min(excess, 0.5)));
  return sum;
}

Result<Released<Matrix>> NoisyVector::release(std::span<const double> v, double clip, NoiseMultiplier multiplier,
                                              SecureRandom& random) {
  auto sum = EIGENVEIL_TRY(on_lattice(v, clip));
  return GaussianMechanism::release(std::move(sum), 1 / multiplier, random);
}

ClippedSum::ClippedSum(std::size_t entries, double clip)
    : clip_(clip), sum_{PrivateSum::Layout::kPlain,  entries, 1, sensitivity(), NoisyVector::unit(clip),
                        std::vector<Int128>(entries)} {}

void ClippedSum::add(std::span<const double> v) {
  const auto u = NoisyVector::on_lattice(v, clip_);
  ++rows_;
  if (!u) return;
  for (std::size_t i = 0; i < sum_.values.size(); ++i) sum_.values[i] += u->values[i];
}

Result<Released<Matrix>> ClippedSum::release(NoiseMultiplier multiplier, SecureRandom& random) && {
  const auto noise = EIGENVEIL_TRY(GaussianMechanism::noise_for(sum_, 1 / multiplier));
  // rows 2^40 2^shift must stay below 2^126
  if (noise.shift > 50 || rows_ >= (std::size_t{1} << 31))
    return internal_error("a sum of clipped vectors is larger than what its noise is drawn for");
  return GaussianMechanism::release(std::move(sum_), 1 / multiplier, random);
}

}  // namespace eigenveil
