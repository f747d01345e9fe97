// SPDX-License-Identifier: Apache-2.0
// must not compile: no matching function for call to
// The plan is the only source of noise: an ask cannot bring any.
#include "eigenveil/query/oracle.hpp"

using namespace eigenveil;

Result<Answer> gram(Oracle& oracle) {
#ifdef MISTAKE
  return oracle.ask("gram", Gram{}, 0.5);
#else
  return oracle.ask("gram", Gram{});
#endif
}
