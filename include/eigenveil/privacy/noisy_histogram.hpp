#pragma once

#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/sparse_vector.hpp"

namespace eigenveil {

/// How many rows lie between neighbouring points of a grid, each count with discrete Laplace noise: what a holder can
/// tell about counts without knowing those of others. noisy_histogram.proof.md.
class NoisyHistogram {
 public:
  /// Cell j counts the rows above grid point j and not above the next one.
  static Result<Released<std::vector<std::int64_t>>> release(const PrivateCounts& above, Adjacency adjacency,
                                                             PureEpsilon epsilon, SecureRandom& random);

  /// The first grid point that at most `target` rows exceed by the cells of all holders added up; the last one if
  /// there is none. Post-processing.
  static Released<std::size_t> first_at_most(const std::vector<std::int64_t>& cells, std::int64_t target);
};

}  // namespace eigenveil
