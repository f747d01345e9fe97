// must not compile: could not convert .* to .*eigenveil::Spending
// SPDX-License-Identifier: Apache-2.0
// Rows in memory belong to no file: who counts what is spent has to be said.
#include "eigenveil/eigenveil.hpp"

using namespace eigenveil;

Spending spending() {
#ifdef MISTAKE
  return {.epsilon = 1, .delta = 1e-6};
#else
  return {.epsilon = 1, .delta = 1e-6, .ledger = Ledger::none()};
#endif
}
