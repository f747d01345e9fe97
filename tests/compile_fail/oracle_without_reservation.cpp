// SPDX-License-Identifier: Apache-2.0
// must not compile: no matching function for call to
// A plan that was not charged makes no oracle.
#include "eigenveil/query/local_oracle.hpp"

using namespace eigenveil;

void make(BoundedRows rows, PrivacyPlan plan, std::unique_ptr<Reservation> paid) {
#ifdef MISTAKE
  LocalOracle oracle(std::move(rows), plan, SecureRandom::from_kernel());
#else
  (void)plan;
  LocalOracle oracle(std::move(rows), std::move(paid), SecureRandom::from_kernel());
#endif
}
