// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// The Renyi divergence of integer order alpha >= 2 between the answers on any two neighbours, in both directions:
/// an upper bound, rounded up. See src/privacy/renyi.proof.md.
double renyi_of(const Mechanism& mechanism, int alpha);

/// A computation of Renyi divergence r at order alpha is (r + renyi_conversion(alpha, delta), delta)-DP
/// (Canonne, Kamath and Steinke 2020, proposition 12). Rounded up; may be negative when delta is large.
double renyi_conversion(int alpha, Delta delta);

/// The orders worth trying: every small integer, then about sixteen per doubling, up to 4096.
std::vector<int> renyi_orders();

}  // namespace eigenveil
