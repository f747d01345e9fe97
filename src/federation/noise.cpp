// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/noise.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/base/version.hpp"

namespace eigenveil::federation {

Result<SecureRandom> StudyNoise::stream(const Secret& noise_key, std::string_view head, std::string_view data,
                                        const PrivateSum& sum, Mu mu, std::size_t shares) {
  const auto scale = EIGENVEIL_TRY(GaussianMechanism::noise_for(sum, mu));
  const std::string build = fmt::format("{} {}", version(), __VERSION__);
  const std::string drawn = fmt::format("{} {} {} {}", scale.shift, scale.coarse, scale.sigma, scale.sigma_off);
  const Secret key = noise_key.derive("noise", {head, data, build, drawn, fmt::format("{}", shares)});
  return SecureRandom::from_key(key.bytes());
}

bool fits_narrow(Sensitivity moved, const NoiseScale& noise, std::size_t sites, std::size_t rows) {
  const double largest =
      static_cast<double>(sites) * 64 * noise.deviation() + static_cast<double>(rows) * moved.value();
  return std::ldexp(largest, noise.shift) < 0x1p62;
}

}  // namespace eigenveil::federation
