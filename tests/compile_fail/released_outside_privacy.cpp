// SPDX-License-Identifier: Apache-2.0
// must not compile: is private within this context
// Only the mechanisms of the privacy room can say that a value is released.
#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/released.hpp"

using namespace eigenveil;

double use(const Released<Matrix>& released) { return (*released)(0, 0); }

#ifdef MISTAKE
double cheat(const Matrix& secret) { return use(Released<Matrix>(secret)); }
#endif
