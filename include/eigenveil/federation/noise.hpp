// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/federation/chain.hpp"
#include "eigenveil/privacy/gaussian_mechanism.hpp"

namespace eigenveil::federation {

/// The noise of one ask at one site: ChaCha20 under KDF(K; "noise", head, data, build, scale, shares). The same ask has
/// the same noise for ever, at a restored copy too; any other ask, data, program or scale has noise of its own.
class StudyNoise {
 public:
  static Result<SecureRandom> stream(const Secret& noise_key, std::string_view head, std::string_view data,
                                     const PrivateSum& sum, Mu mu, std::size_t shares);
};

/// Whether 8 bytes hold every total of so many sites with so many rows between them, or 16 are needed. A row moves no
/// entry by more than the sensitivity, and no site draws more than 64 deviations (samplers.proof.md): their sum stays
/// below 2^62, half of what fits.
bool fits_narrow(Sensitivity moved, const NoiseScale& noise, std::size_t sites, std::size_t rows);

}  // namespace eigenveil::federation
