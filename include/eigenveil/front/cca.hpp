// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private canonical correlations of two groups of columns.
class Cca final : public PublishedDirections {
 public:
  struct Options {
    Required<Eigen::Index> components;
    Required<std::vector<std::string>> x_columns;  ///< names, 1-based positions or ranges: {"1-25"}
    Required<std::vector<std::string>> y_columns;
    EIGENVEIL_ROW_OPTIONS
    EIGENVEIL_GEP_OPTIONS
  };

  Matrix x_weights;     ///< d1 x K
  Matrix y_weights;     ///< d2 x K
  Vector correlations;  ///< descending

  Vector correlations_estimate;  ///< with the bias of noise and sampling taken out
  Vector correlations_low;       ///< of their 95% bands
  Vector correlations_high;
  Matrix x_weights_deviation;  ///< of each weight about cos(angle) times it; more than 1.96 of them is a finding
  Matrix y_weights_deviation;  ///< of each weight about cos(angle) times it; more than 1.96 of them is a finding

  explicit Cca(std::shared_ptr<const Model> model);
  static Result<Cca> load(const std::string& path);
};

Result<Cca> cca(const Rows& rows, const Cca::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> cca_cost(const Rows& rows, const Cca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
