// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/event.hpp"
#include "eigenveil/privacy/released.hpp"
#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// Exact counts of rows above each point of an ascending grid. A row adds 1 to the counts of all points below its
/// statistic, so neighbours move every count by at most 1 and all in the same direction. Rows of people share the 1 of
/// their person: what the sparse vector needs of neighbours then is in sparse_vector.proof.md.
struct PrivateCounts {
  std::vector<std::int64_t> values;
  int fraction = 0;  ///< values count in 2^-fraction, at most 2^-20
};

/// The sparse vector technique for such counts: sparse_vector.proof.md.
class SparseVector {
 public:
  /// Refuses an epsilon whose noise the sampler cannot draw.
  static Status check(PureEpsilon epsilon);

  /// The first grid point whose noisy count is at most the noisy `target`; the last one if there is none.
  static Result<Released<std::size_t>> first_at_most(const PrivateCounts& counts, std::int64_t target,
                                                     PureEpsilon epsilon, SecureRandom& random);
};

}  // namespace eigenveil
