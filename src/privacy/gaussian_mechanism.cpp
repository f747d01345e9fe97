// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/gaussian_mechanism.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/privacy/samplers.hpp"

namespace eigenveil {
namespace {

constexpr double kInflation = 1.0 + 0x1p-20;  // pays for the discrete law and for rounding: discrete.proof.md
constexpr double kSmallestSigma = 0x1p40;
constexpr int kCoarse = 20;  // "Large noise" of the proof
constexpr auto kLargestSigma = static_cast<double>(DiscreteGaussian::kLargestSigma);

// Noise of one deviation: 2^coarse A + B, or A alone.
class Draw {
 public:
  Draw(std::uint64_t sigma, int coarse) : coarse_(coarse), draw_(sigma) {}
  Int128 operator()(SecureRandom& random) const {
    if (coarse_ == 0) return draw_(random);
    return Int128{draw_(random)} * (Int128{1} << coarse_) + fine_(random);
  }

 private:
  int coarse_;
  DiscreteGaussian draw_;
  DiscreteGaussian fine_{static_cast<std::uint64_t>(kSmallestSigma)};
};

// Noise on values[first..last).
void draw_into(PrivateSum& sum, const NoiseScale& noise, std::size_t first, std::size_t last, SecureRandom& random) {
  const int up = noise.shift - sum.fraction;
  const auto add = [&](std::size_t i, const Draw& draw) {
    sum.values[i] = (up >= 0 ? sum.values[i] << up : sum.values[i] >> -up) + draw(random);
  };
  const Draw draw(noise.sigma, noise.coarse);
  if (sum.layout == PrivateSum::Layout::kPlain) {
    for (std::size_t i = first; i < last; ++i) add(i, draw);
    return;
  }
  const Draw draw_off(noise.sigma_off, noise.coarse);
  std::size_t diagonal = 0;  // where a column of the lower triangle begins
  std::size_t length = sum.rows;
  while (diagonal < first) diagonal += length--;
  for (std::size_t i = first; i < last; ++i) {
    add(i, i == diagonal ? draw : draw_off);
    if (i == diagonal) diagonal += length--;
  }
}

// A long sum's blocks have streams of their own, so that several threads draw and their number does not matter.
void draw_into(PrivateSum& sum, const NoiseScale& noise, SecureRandom& random) {
  constexpr std::size_t kBlock = 1U << 14;
  constexpr std::size_t kStreams = 64;  // at a time: 1 MB of them
  const std::size_t size = sum.values.size();
  if (size <= kBlock) return draw_into(sum, noise, 0, size, random);
  for (std::size_t begin = 0; begin < size; begin += kStreams * kBlock) {
    std::vector<SecureRandom> streams;
    streams.reserve(kStreams);
    for (std::size_t i = begin; i < size && streams.size() < kStreams; i += kBlock) streams.push_back(random.fork());
    Tickets blocks(streams.size());
    on_threads(std::min(omp_get_max_threads(), static_cast<int>(streams.size())), [&] {
      while (const auto i = blocks.next()) {
        const std::size_t first = begin + *i * kBlock;
        draw_into(sum, noise, first, std::min(size, first + kBlock), streams[*i]);
      }
    });
  }
}

// The nearest double, as static_cast gives it; that of a short number is quicker to find.
double to_double(Int128 x) {
  const auto narrow = static_cast<std::int64_t>(x);
  return narrow == x ? static_cast<double>(narrow) : static_cast<double>(x);
}

Matrix scaled(const PrivateSum& sum, double unit) {
  const Eigen::Index rows = sum.rows;
  const Eigen::Index columns = sum.columns;
  Matrix result(rows, columns);
  const Int128* value = sum.values.data();
  for (Eigen::Index j = 0; j < columns; ++j)
    for (Eigen::Index i = sum.layout == PrivateSum::Layout::kPlain ? 0 : j; i < rows; ++i)
      result(i, j) = to_double(*value++) * unit;
  if (sum.layout == PrivateSum::Layout::kSymmetric) result.triangularView<Eigen::StrictlyUpper>() = result.transpose();
  return result;
}

// Up to what the sampler draws; exact, as deviations are at most 2^54
double rounded_up(double sigma) {
  constexpr auto kStep = static_cast<double>(DiscreteGaussian::kStep);
  return kStep * std::ceil(sigma / kStep);
}

// sigma / sqrt(shares), rounded up
std::uint64_t share_of(std::uint64_t sigma, std::size_t shares) {
  if (shares == 1) return sigma;
  return static_cast<std::uint64_t>(
      rounded_up(static_cast<double>(sigma) / std::sqrt(static_cast<double>(shares)) * (1.0 + 0x1p-40)));
}

}  // namespace

Sensitivity::Sensitivity(double value) : value_(value) {
  if (!(value > 0 && std::isfinite(value))) throw std::domain_error(fmt::format("{} is no sensitivity", value));
}

Result<NoiseScale> GaussianMechanism::noise_for(Sensitivity sensitivity, Mu mu) {
  const double off = sensitivity.value() / mu * kInflation / std::sqrt(2.0);
  const auto refused = [&] {
    return usage_error(
        fmt::format("this budget needs noise of 2^{:.1f} lattice units (mu = {:.3g}), which is outside what Eigenveil "
                    "draws exactly (2^40 to 2^74); ask for a larger epsilon or fewer rounds",
                    std::log2(off), mu.value()));
  };
  // The quotient of two numbers that are none of them zero or infinite can be both: nothing is computed with such a
  // one.
  if (!(off >= 0x1p-60 && off <= 0x1p100)) return refused();
  const int shift = std::max(0, static_cast<int>(std::ceil(std::log2(kSmallestSigma / off))));
  // sigma_off^2 >= s^2 / (2 mu^2) and sigma^2 >= 2 sigma_off^2, both rounded up
  const int coarse = 2 * off > kLargestSigma ? kCoarse : 0;
  const double sigma_off = rounded_up(std::ldexp(off, shift - coarse));
  const double sigma = rounded_up(std::sqrt(2.0) * sigma_off * (1.0 + 0x1p-40));
  if (!(sigma <= kLargestSigma) || shift > 60) return refused();
  return NoiseScale{shift, coarse, static_cast<std::uint64_t>(sigma), static_cast<std::uint64_t>(sigma_off)};
}

// "Rounding" of the proof: with e = ||(1, ..., 1)|| in the norm of the layout, S 2^shift + e <= S (1 + 2^-22) 2^shift.
Result<NoiseScale> GaussianMechanism::noise_for(const PrivateSum& sum, Mu mu) {
  const bool symmetric = sum.layout == PrivateSum::Layout::kSymmetric;
  const double e = std::sqrt(static_cast<double>(sum.rows) * static_cast<double>(symmetric ? sum.rows : sum.columns));
  Sensitivity moved = sum.moved;
  for (;;) {
    const auto noise = EIGENVEIL_TRY(noise_for(moved, mu));
    const double rounded = sum.fraction <= noise.shift ? 0 : std::ldexp(e, -noise.shift);
    if (sum.moved.value() + rounded <= moved.value() * (1 + 0x1p-22)) return noise;
    moved = Sensitivity((sum.moved.value() + rounded) * (1 + 0x1p-40));
  }
}

Result<NoisySum> GaussianMechanism::add_noise(PrivateSum sum, Mu mu, std::size_t shares, SecureRandom& random) {
  if (shares < 1 || shares > 4096) return internal_error("noise is shared by 1 to 4096 holders");
  auto noise = EIGENVEIL_TRY(noise_for(sum, mu));
  noise.sigma = share_of(noise.sigma, shares);
  noise.sigma_off = share_of(noise.sigma_off, shares);
  draw_into(sum, noise, random);
  sum.fraction = 0;
  return NoisySum(std::move(sum), noise.shift);
}

Released<Matrix> GaussianMechanism::to_matrix(const NoisySum& noisy, double scale) {
  return Released<Matrix>(scaled(noisy.sum_, std::ldexp(scale * noisy.sum_.unit, -noisy.shift_)));
}

Result<Released<Matrix>> GaussianMechanism::release(PrivateSum sum, Mu mu, SecureRandom& random) {
  const auto noisy = EIGENVEIL_TRY(add_noise(std::move(sum), mu, 1, random));
  return to_matrix(noisy);
}

}  // namespace eigenveil
