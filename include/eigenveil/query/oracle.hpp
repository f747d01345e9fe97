// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/query/batch_query.hpp"
#include "eigenveil/query/filtered.hpp"
#include "eigenveil/query/model_query.hpp"

namespace eigenveil {

/// What an estimator may know of the rows: public facts.
struct RowsShape {
  std::size_t columns;
  /// Of rows that people have: how many people. Replace-one only: under add-remove-one it is private. None either where
  /// what all rows weigh together is private.
  std::optional<std::size_t> rows;
  Lattice lattice;
  Adjacency adjacency;
};

/// A released matrix that knows its own noise.
class Answer {
 public:
  Answer(Released<Matrix> value, double deviation) : value_(std::move(value)), deviation_(deviation) {}
  const Matrix& value() const { return value_.value(); }
  /// Standard deviation of the noise in one entry (off the diagonal of a symmetric answer), in the features' units.
  double deviation() const { return deviation_; }

 private:
  Released<Matrix> value_;
  double deviation_;
};

/// A threshold that was found privately, and the sum that it filters.
struct FilteredAnswer {
  Released<std::size_t> chosen;  ///< index of the threshold in the grid
  Answer product;
};

/// The only way to the data: noisy exact sums, each the next one of a charged plan. An ask says what is asked and which
/// answer of the plan it is; how much noise there is and between which neighbours stands in the plan alone. Estimators
/// are programs over this interface and run on every engine that has it.
class Oracle {
 public:
  virtual ~Oracle() = default;

  virtual RowsShape shape() const = 0;
  /// What was charged. Public. For engines; what an estimator needs of it is below.
  virtual const PrivacyPlan& plan() const = 0;

  /// Is there an answer of that label?
  bool plans(const std::string& label) const;
  /// Of the plan's Gaussian answer of that label.
  Result<Mu> planned_mu(const std::string& label) const;
  /// Of the plan's search of that label.
  Result<PureEpsilon> planned_epsilon(const std::string& label) const;
  /// mu of all Gaussian answers of the plan together.
  double total_mu() const;

  /// The sum with the Gaussian noise of the plan's next event, which must be called `label`.
  virtual Result<Answer> ask(const std::string& label, const SumQuery& query) = 0;

  /// The sum with the noise of all answers of the plan that are left: they are given up for it. Only where one owner
  /// holds all rows: other engines refuse.
  virtual Result<Answer> ask_rest(const std::string& label, const SumQuery& query);

  /// The first grid point that at most `target` rows exceed, by the sparse vector technique.
  virtual Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                                      std::int64_t target) = 0;

  /// Two events of the plan from one sweep: the first threshold that at most `target` rows exceed (`search`, pure
  /// epsilon), then the filtered sum with Gaussian noise (`product`).
  virtual Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product,
                                              const FilteredApply& query, std::int64_t target) = 0;

  /// An answer whose sensitivity rests on a model of the rows. Only a plan that says `model_based` may ask, and only
  /// where one owner holds all rows: other engines refuse.
  virtual Result<Answer> ask_model(const std::string& label, const ModelQuery& query);

  /// A function of a Poisson sample of the rows. Add-remove-one only, and only where one process holds all rows: other
  /// engines refuse.
  virtual Result<Answer> ask_batch(const std::string& label, const BatchQuery& query);

  /// Shifts every row by a released mean and bounds it again. Charges nothing: rows are mapped one by one.
  virtual Status recenter(const Vector& mean, RowBound radius) = 0;

  /// Replaces every row a by M^T a, M square, and bounds it again. Charges nothing either.
  virtual Status remap(const LinearMap& M, RowBound radius) = 0;

  /// True when every answer of the plan was asked for and nothing was refused.
  virtual bool complete() const = 0;
};

}  // namespace eigenveil
