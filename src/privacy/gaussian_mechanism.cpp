#include "eigenveil/privacy/gaussian_mechanism.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/privacy/samplers.hpp"

namespace eigenveil {
namespace {

constexpr double kInflation = 1.0 + 0x1p-20;  // pays for the discrete law and for rounding: discrete.proof.md
constexpr double kSmallestSigma = 0x1p40;

void add_noise(PrivateSum& sum, const NoiseScale& noise, SecureRandom& random) {
  const Int128 scale = Int128{1} << noise.shift;
  const DiscreteGaussian draw(noise.sigma);
  if (sum.layout == PrivateSum::Layout::kPlain) {
    for (Int128& value : sum.values) value = value * scale + draw(random);
    return;
  }
  const DiscreteGaussian draw_off(noise.sigma_off);
  Int128* value = sum.values.data();
  for (std::size_t column = 0; column < sum.rows; ++column)
    for (std::size_t row = column; row < sum.rows; ++row, ++value)
      *value = *value * scale + (row == column ? draw(random) : draw_off(random));
}

Matrix to_matrix(const PrivateSum& sum, double unit) {
  const auto rows = static_cast<Eigen::Index>(sum.rows);
  const auto columns = static_cast<Eigen::Index>(sum.columns);
  Matrix result(rows, columns);
  const Int128* value = sum.values.data();
  for (Eigen::Index j = 0; j < columns; ++j)
    for (Eigen::Index i = sum.layout == PrivateSum::Layout::kPlain ? 0 : j; i < rows; ++i)
      result(i, j) = static_cast<double>(*value++) * unit;
  if (sum.layout == PrivateSum::Layout::kSymmetric) result.triangularView<Eigen::StrictlyUpper>() = result.transpose();
  return result;
}

}  // namespace

Result<NoiseScale> GaussianMechanism::noise_for(Sensitivity sensitivity, double mu) {
  if (!(mu > 0) || !std::isfinite(mu) || !(sensitivity.value() > 0))
    return internal_error(fmt::format("no noise scale for sensitivity {} and mu {}", sensitivity.value(), mu));
  const double off = sensitivity.value() / mu * kInflation / std::sqrt(2.0);
  const int shift = std::max(0, static_cast<int>(std::ceil(std::log2(kSmallestSigma / off))));
  // sigma_off^2 >= s^2 / (2 mu^2) and sigma^2 >= 2 sigma_off^2, both rounded up to whole lattice units
  const double sigma_off = std::ceil(std::ldexp(off, shift));
  const double sigma = std::ceil(std::sqrt(2.0) * sigma_off * (1.0 + 0x1p-40));
  if (!(sigma <= static_cast<double>(DiscreteGaussian::kLargestSigma)) || shift > 60)
    return usage_error(
        fmt::format("this budget needs noise of 2^{:.1f} lattice units (mu = {:.3g}), which is outside what Eigenveil "
                    "draws exactly (2^40 to 2^54); ask for a larger epsilon or fewer rounds",
                    std::log2(off), mu));
  return NoiseScale{shift, static_cast<std::uint64_t>(sigma), static_cast<std::uint64_t>(sigma_off)};
}

Result<Released<Matrix>> GaussianMechanism::release(PrivateSum sum, Sensitivity sensitivity, double mu, double unit,
                                                    SecureRandom& random) {
  if (std::isinf(mu)) return Released<Matrix>(to_matrix(sum, unit));
  auto noise = noise_for(sensitivity, mu);
  if (!noise) return noise.error();
  add_noise(sum, *noise, random);
  return Released<Matrix>(to_matrix(sum, std::ldexp(unit, -noise->shift)));
}

}  // namespace eigenveil
