// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/query/oracle.hpp"

namespace eigenveil {

/// An oracle over rows that were never made.
class LawOracle : public Oracle {
 public:
  /// It was asked for what the law does not tell: rows have to be made.
  virtual bool at_a_loss() const = 0;
  /// How many times larger the deviations of its answers are than those of the plan.
  virtual double stretch() const = 0;
};

/// What the sums over rows of a model are, for any number of rows, without the rows. A draw is told by its seed: it has
/// the same standard random numbers whatever the number of rows and the budget are, so that curves are smooth.
class RowLaw {
 public:
  virtual ~RowLaw() = default;

  /// `whole`: all columns; otherwise columns of small variance may be merged, as long as angles keep their law.
  /// `plan`: for that many rows.
  virtual std::unique_ptr<LawOracle> oracle(std::size_t rows, const PrivacyPlan& plan, std::uint64_t seed,
                                            bool whole) = 0;
  virtual std::size_t columns() const = 0;
  virtual double radius() const = 0;  ///< of the rows' lattice
  /// In the columns of that seed's oracle: as of a Draw.
  virtual Matrix truth(const std::string& array, std::uint64_t seed, bool whole) const = 0;
  virtual double lost(const Matrix& V, std::uint64_t seed, bool whole) const = 0;
};

}  // namespace eigenveil
