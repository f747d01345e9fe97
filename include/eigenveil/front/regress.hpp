// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/regress/estimated.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// A private linear regression of one column on the others, in the columns' own units.
class Regress final : public PublishedDirections {
 public:
  struct Options {
    Required<std::string> target;      ///< column to explain, by name or 1-based position: a number with a public range
    std::optional<double> ridge = {};  ///< on the mean squares of the scaled columns; default: what the noise asks for
    EIGENVEIL_ROW_OPTIONS
  };

  struct Coefficient {
    std::string name;
    Estimated estimated;
  };

  std::string target;
  Vector coefficients;  ///< one per feature
  double intercept;
  std::vector<Coefficient> intervals;          ///< the intercept's, then those of the features that took part
  std::optional<Estimated> residual_variance;  ///< none: the noise is too large to tell
  std::optional<Estimated> r_squared;

  explicit Regress(std::shared_ptr<const Model> model);
  static Result<Regress> load(const std::string& path);
  /// intercept + coefficients . row, values clamped to their ranges. Predictions for single rows are not private.
  Result<Vector> predict(const Rows& rows) const;
};

Result<Regress> regress(const Rows& rows, const Regress::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> regress_cost(const Rows& rows, const Regress::Options& options, const Spending& spending,
                                       std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
