// SPDX-License-Identifier: Apache-2.0
// must not compile: no matching function for call to
// A plan says between which neighbours its noise hides; nobody says it a second time.
#include "eigenveil/privacy/event.hpp"

using namespace eigenveil;

PrivacyPlan plan() {
#ifdef MISTAKE
  return PrivacyPlan({{"gram", GaussianEvent{0.5}}});
#else
  return PrivacyPlan(Adjacency::kReplaceOne, {{"gram", GaussianEvent{0.5}}});
#endif
}
