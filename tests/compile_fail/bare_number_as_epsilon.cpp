// SPDX-License-Identifier: Apache-2.0
// must not compile: could not convert
// A bare number is no privacy parameter: it has to pass Epsilon::of.
#include "eigenveil/privacy/accountant.hpp"

using namespace eigenveil;

Result<PrivacyPlan> plan(const PrivacyPlan& shape, Delta delta) {
#ifdef MISTAKE
  return calibrate(shape, 1.0, delta);
#else
  return calibrate(shape, *Epsilon::of(1.0), delta);
#endif
}
