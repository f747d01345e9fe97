// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace eigenveil {

/// A number without an exponent, from a billionth to a million: 0.000001, 0.5, 1000; six digits of others: 1e-18.
std::string plain(double value);

/// A small probability as people read it: "0.000001 (1 in 1,000,000)".
std::string chance(double probability);

}  // namespace eigenveil
