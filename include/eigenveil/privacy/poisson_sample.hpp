// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// Takes each row with the same public probability, independently, by exact comparisons of random bits.
/// Which rows and how many is private. noisy_vector.proof.md.
class PoissonSample {
 public:
  /// 0 < q <= 1.
  static Result<PoissonSample> of(double q);

  /// The probability as used: at most q, and less by less than 2^-61 q.
  double probability() const;

  /// Replaces `chosen` by the rows taken out of 0, ..., rows - 1, in order.
  void draw(std::size_t rows, SecureRandom& random, std::vector<std::size_t>& chosen) const;

 private:
  PoissonSample(int halvings, std::uint64_t threshold) : halvings_(halvings), threshold_(threshold) {}
  // q = 2^-halvings * threshold / 2^62, threshold in (2^61, 2^62]
  int halvings_;
  std::uint64_t threshold_;
};

}  // namespace eigenveil
