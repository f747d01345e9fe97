// SPDX-License-Identifier: Apache-2.0
// must not compile: no matching function for call to
// What was charged for one kind of neighbours is not answered for another: the oracle has no say in it.
#include "eigenveil/query/local_oracle.hpp"

using namespace eigenveil;

void make(BoundedRows rows, std::unique_ptr<Reservation> paid) {
#ifdef MISTAKE
  LocalOracle oracle(std::move(rows), Adjacency::kAddRemoveOne, std::move(paid), SecureRandom::from_kernel());
#else
  LocalOracle oracle(std::move(rows), std::move(paid), SecureRandom::from_kernel());
#endif
}
