// SPDX-License-Identifier: Apache-2.0
// must not compile: use of deleted function
// A copied stream would give the same noise twice.
#include "eigenveil/privacy/secure_random.hpp"

using namespace eigenveil;

SecureRandom take(SecureRandom& random) {
#ifdef MISTAKE
  return random;
#else
  return std::move(random);
#endif
}
