// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/poisson_sample.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

Result<PoissonSample> PoissonSample::of(double q) {
  if (!(q >= 1e-15 && q <= 1))
    return usage_error(fmt::format("`sample_rate` must be a probability above 0 and at most 1, but is {}", q));
  // q in (2^-(h+1), 2^-h]
  int halvings = -std::ilogb(q);
  if (std::ldexp(1.0, -halvings) < q) --halvings;
  return PoissonSample(halvings, static_cast<std::uint64_t>(std::ldexp(q, halvings + 62)));
}

double PoissonSample::probability() const { return std::ldexp(static_cast<double>(threshold_), -halvings_ - 62); }

void PoissonSample::draw(std::size_t rows, SecureRandom& random, std::vector<std::size_t>& chosen) const {
  chosen.clear();
  for (std::size_t first = 0; first < rows; first += 64) {
    // Each of 64 rows stays with probability 2^-halvings, ...
    std::uint64_t stay = rows - first >= 64 ? UINT64_MAX : (std::uint64_t{1} << (rows - first)) - 1;
    for (int i = 0; i < halvings_ && stay != 0; ++i) stay &= random.next();
    // ... and then with probability threshold / 2^62.
    for (; stay != 0; stay &= stay - 1)
      if ((random.next() >> 2) < threshold_) chosen.push_back(first + std::countr_zero(stay));
  }
}

}  // namespace eigenveil
