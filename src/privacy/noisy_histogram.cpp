#include "eigenveil/privacy/noisy_histogram.hpp"

#include <cmath>

#include "eigenveil/privacy/samplers.hpp"

namespace eigenveil {

Result<Released<std::vector<std::int64_t>>> NoisyHistogram::release(const PrivateCounts& above, Adjacency adjacency,
                                                                    PureEpsilon epsilon, SecureRandom& random) {
  std::vector<std::int64_t> cells = above.values;
  for (std::size_t j = 0; j + 1 < cells.size(); ++j) cells[j] -= cells[j + 1];
  EIGENVEIL_TRY(SparseVector::check(epsilon));
  // scale = moved / epsilon, with epsilon rounded down to a multiple of 2^-40
  const std::uint64_t moved = adjacency == Adjacency::kReplaceOne ? 2 : 1;
  const DiscreteLaplace draw(moved << 40, static_cast<std::uint64_t>(std::ldexp(epsilon, 40)));
  for (std::int64_t& cell : cells) cell += draw(random);
  return Released<std::vector<std::int64_t>>(std::move(cells));
}

Released<std::size_t> NoisyHistogram::first_at_most(const std::vector<std::int64_t>& cells, std::int64_t target) {
  std::size_t first = cells.size() - 1;
  std::int64_t above = cells.back();
  while (first > 0 && above + cells[first - 1] <= target) above += cells[--first];
  return Released<std::size_t>(first);
}

}  // namespace eigenveil
