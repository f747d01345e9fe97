// SPDX-License-Identifier: Apache-2.0
// must not compile: could not convert
// Epsilon and Delta are types of their own.
#include "eigenveil/privacy/accountant.hpp"

using namespace eigenveil;

Result<PrivacyPlan> plan(const PrivacyPlan& shape, Epsilon epsilon, Delta delta) {
#ifdef MISTAKE
  return calibrate(shape, delta, epsilon);
#else
  return calibrate(shape, epsilon, delta);
#endif
}
