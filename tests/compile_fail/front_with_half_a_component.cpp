// must not compile: could not convert .* to .*eigenveil::Pca::Options
// SPDX-License-Identifier: Apache-2.0
// How many components there are is a whole number: half of one is not dropped in silence.
#include "eigenveil/eigenveil.hpp"

using namespace eigenveil;

Pca::Options options() {
#ifdef MISTAKE
  return {.components = 2.5, .row_bound = 1.5};
#else
  return {.components = 2, .row_bound = 1.5};
#endif
}
