// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// a b - c as this library was compiled: rounded twice, as its proofs assume, also where the machine could do both at
/// once. The one expression that shows whether -ffp-contract=off is in force.
double product_minus(double a, double b, double c);

}  // namespace eigenveil
