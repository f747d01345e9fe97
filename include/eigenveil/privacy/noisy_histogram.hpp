// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/gaussian_mechanism.hpp"
#include "eigenveil/privacy/sparse_vector.hpp"

namespace eigenveil {

/// How many rows lie between neighbouring points of a grid: what holders can tell about counts without knowing those of
/// others, each with Gaussian noise or a share of it. noisy_histogram.proof.md.
class NoisyHistogram {
 public:
  /// Cell j counts the rows above grid point j and not above the next one.
  static PrivateSum cells(const PrivateCounts& above, Adjacency adjacency);
  /// The same without values.
  static PrivateSum empty(std::size_t points, Adjacency adjacency);

  /// The first grid point that at most `target` rows exceed by the cells of all holders added up; the last one if
  /// there is none. Post-processing.
  static Released<std::size_t> first_at_most(const Released<Matrix>& cells, std::int64_t target);
};

}  // namespace eigenveil
