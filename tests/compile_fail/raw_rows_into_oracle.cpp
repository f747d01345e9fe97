// SPDX-License-Identifier: Apache-2.0
// must not compile: no matching function for call to
// Raw rows are not BoundedRows: an oracle does not take them.
#include "eigenveil/query/local_oracle.hpp"

using namespace eigenveil;

std::unique_ptr<Oracle> make(BoundedRows bounded, RowMajorMatrix raw, std::unique_ptr<Reservation> paid) {
#ifdef MISTAKE
  return std::make_unique<LocalOracle>(LocalOracle(raw, std::move(paid), SecureRandom::from_kernel()));
#else
  (void)raw;
  return std::make_unique<LocalOracle>(std::move(bounded), std::move(paid), SecureRandom::from_kernel());
#endif
}
