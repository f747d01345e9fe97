#pragma once

#include <optional>
#include <string>

#include "eigenveil/query/query.hpp"

namespace eigenveil {

/// What an estimator may know of the rows: public facts.
struct RowsShape {
  std::size_t columns;
  std::optional<std::size_t> rows;  ///< replace-one only: under add-remove-one the number of rows is private
  Lattice lattice;
  Adjacency adjacency;
};

/// The only way to the data: noisy exact sums, each the next one of a charged plan. Estimators are programs over this
/// interface and run on every engine that has it.
class Oracle {
 public:
  virtual ~Oracle() = default;

  virtual RowsShape shape() const = 0;

  /// The sum with the Gaussian noise of the plan's next event, which must be called `label`.
  virtual Result<Released<Matrix>> ask(const std::string& label, const SumQuery& query, double mu) = 0;

  /// The first grid point that at most `target` rows exceed, by the sparse vector technique.
  virtual Result<Released<std::size_t>> first_at_most(const std::string& label, const CountQuery& query,
                                                      std::int64_t target, double epsilon) = 0;

  /// Shifts every row by a released mean and bounds it again. Charges nothing: rows are mapped one by one.
  virtual Status recenter(const Vector& mean, RowBound radius) = 0;

  /// True when every answer of the plan was asked for and nothing was refused.
  virtual bool complete() const = 0;

  /// Standard deviation of the noise in one entry of the answer (off the diagonal for Gram), in the features' units.
  double noise_of(const SumQuery& query, double mu) const;
};

}  // namespace eigenveil
