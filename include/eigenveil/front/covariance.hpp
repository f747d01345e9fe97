// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/choices.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

class Regress;

/// A private covariance matrix:
///   Sigma = components^T (diag(eigenvalues) - noise_variance I) components + noise_variance I
class Covariance final : public PublishedComponents {
 public:
  struct Options {
    EIGENVEIL_ROW_OPTIONS
    std::optional<PcaMethod> method = PcaMethod::kGram;  ///< gram or spiked; none: the better forecast
    Scale scale = Scale::kRange;                         ///< correlation: the correlation matrix too (gram)
    bool dense = false;                                  ///< spiked: the d x d matrix too
    std::optional<Eigen::Index> rank = {};               ///< spiked; default: as many as stand out of the noise
    Guarantee guarantee = Guarantee::kStrict;            ///< spiked
    std::optional<double> noise_variance = {};           ///< spiked: if it is known; default: released
    std::optional<double> spike = {};                    ///< spiked, model: if it is known
    std::string spectrum = {};                           ///< forecasts: file of public eigenvalues
    std::optional<Eigen::Index> expected_rows = {};      ///< forecasts: where the number of rows is private
    double signal_share = 1;                             ///< forecasts: share of rows that carry the components
  };

  Matrix covariance;      ///< d x d, of the features; empty for spiked unless dense
  Matrix correlation;     ///< likewise, with `scale` correlation: then components and eigenvalues are of it
  double noise_variance;  ///< zero for gram

  explicit Covariance(std::shared_ptr<const Model> model);
  static Result<Covariance> load(const std::string& path);
  /// A regression of any of its columns on the others, from what was paid for already: of method gram, about a private
  /// mean. The type is in front/regress.hpp.
  Result<Regress> regress(const std::string& target, std::optional<double> ridge = {}) const;
};

Result<Covariance> covariance(const Rows& rows, const Covariance::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> covariance_cost(const Rows& rows, const Covariance::Options& options,
                                          const Spending& spending, std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
