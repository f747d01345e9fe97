// must not compile: could not convert .* to .*eigenveil::Spending
// SPDX-License-Identifier: Apache-2.0
// An option that has no default cannot be left out.
#include "eigenveil/eigenveil.hpp"

using namespace eigenveil;

Spending spending() {
#ifdef MISTAKE
  return {.epsilon = 1, .ledger = Ledger::none()};
#else
  return {.epsilon = 1, .delta = 1e-6, .ledger = Ledger::none()};
#endif
}
