// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/privacy/noisy_vector.hpp"
#include "eigenveil/privacy/secure_random.hpp"
#include "eigenveil/query/meter.hpp"

namespace eigenveil {

/// Answers for vectors that somebody else computes from a Poisson sample of rows, as an Oracle does for sums: each ask
/// is the next one of its label in a charged plan, and sampling rate and noise are the plan's. Labels take turns, so
/// each has a meter of its own: their answers compose in any order. What computes a vector is not looked into; it is
/// scaled to `clip` once it is there. privacy/noisy_vector.proof.md.
class GradientOracle {
 public:
  /// The vector of the rows in `batch`, which are not none. `seed` is for what else is random in it.
  using Function =
      std::function<Result<std::vector<double>>(const std::vector<std::size_t>& batch, std::uint64_t seed)>;
  /// The vectors of these rows, one after the other, each computed from its row and its seed alone.
  using EachFunction = std::function<Result<std::vector<double>>(const std::vector<std::size_t>& rows,
                                                                 const std::vector<std::uint64_t>& seeds)>;

  /// `reservation` must outlive the oracle; `answered` answers of each label were given before. `person`: whose row
  /// each one is, by numbers from 0 in the order of their first rows; a step then takes people, and of each one row of
  /// theirs by chance, of a person of m < `least_rows` rows with probability m / `least_rows` only. Empty: it takes
  /// rows.
  static Result<GradientOracle> make(Reservation& reservation, std::size_t rows, std::size_t entries,
                                     SecureRandom random, long long answered,
                                     const std::vector<std::uint32_t>& person = {}, std::size_t least_rows = 1);

  /// Draws a sample, has its vector computed, clips it and releases it: `entries` rows, one column. Neighbours are
  /// 2 clip apart.
  Result<Released<Matrix>> ask(const std::string& label, double clip, const Function& vector);

  /// Draws a sample, has the vector of each of its rows computed, `at_once` rows at a time, clips each, and releases
  /// their sum. Neighbours are clip apart.
  Result<Released<Matrix>> ask_each(const std::string& label, double clip, std::size_t at_once,
                                    const EachFunction& vectors);

  bool complete() const;

 private:
  GradientOracle(Reservation& reservation, std::size_t rows, std::size_t entries, SecureRandom random)
      : reservation_(&reservation), rows_(rows), entries_(entries), random_(std::move(random)) {}

  /// The noise of the label's next answer, once a sample was drawn for it.
  Result<NoiseMultiplier> begin(const std::string& label, double clip);

  Reservation* reservation_;
  std::map<std::string, Meter> meters_;
  std::size_t rows_;
  std::size_t entries_;
  SecureRandom random_;
  bool answering_ = false;
  bool failed_ = false;
  std::vector<std::size_t> chosen_;
  std::vector<std::vector<std::size_t>> rows_of_;  // of each person
  std::size_t least_rows_ = 1;
};

}  // namespace eigenveil
