// SPDX-License-Identifier: Apache-2.0
// must not compile: is private within this context
// An exact sum becomes a released matrix by a mechanism alone.
#include "eigenveil/privacy/gaussian_mechanism.hpp"

using namespace eigenveil;

Released<Matrix> release(const NoisySum& noisy) { return GaussianMechanism::to_matrix(noisy); }

#ifdef MISTAKE
Released<Matrix> cheat(PrivateSum exact) { return release(NoisySum(std::move(exact), 0)); }
#endif
