// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/privacy/noisy_vector.hpp"
#include "eigenveil/privacy/secure_random.hpp"
#include "eigenveil/query/meter.hpp"

namespace eigenveil {

/// Answers for a vector that somebody else computes from a Poisson sample of rows, as an Oracle does for sums: each ask
/// is the next one of a charged plan, and sampling rate and noise are the plan's. What computes the vector is not
/// looked into; it is scaled to `clip` once it is there. privacy/noisy_vector.proof.md.
class GradientOracle {
 public:
  /// The vector of the rows in `batch`, which are not none. `seed` is for what else is random in it.
  using Function =
      std::function<Result<std::vector<double>>(const std::vector<std::size_t>& batch, std::uint64_t seed)>;

  /// `reservation` must outlive the oracle; `answered` of its answers were given before, under `label`. `person`: whose
  /// row each one is, by numbers from 0 in the order of their first rows; a step then takes people, and of each one row
  /// of theirs by chance, of a person of m < `least_rows` rows with probability m / `least_rows` only. Empty: it takes
  /// rows.
  static Result<GradientOracle> make(Reservation& reservation, std::size_t rows, std::size_t entries, double clip,
                                     SecureRandom random, const std::string& label, long long answered,
                                     const std::vector<std::uint32_t>& person = {}, std::size_t least_rows = 1);

  /// Draws a sample, has its vector computed, and releases it: `entries` rows, one column.
  Result<Released<Matrix>> ask(const std::string& label, const Function& vector);

  bool complete() const { return meter_.complete(); }

 private:
  GradientOracle(Reservation& reservation, std::size_t rows, std::size_t entries, double clip, SecureRandom random)
      : reservation_(&reservation),
        meter_(reservation.plan()),
        rows_(rows),
        entries_(entries),
        clip_(clip),
        random_(std::move(random)) {}

  Reservation* reservation_;
  Meter meter_;
  std::size_t rows_;
  std::size_t entries_;
  double clip_;
  SecureRandom random_;
  bool answering_ = false;
  std::vector<std::size_t> chosen_;
  std::vector<std::vector<std::size_t>> rows_of_;  // of each person
  std::size_t least_rows_ = 1;
};

}  // namespace eigenveil
