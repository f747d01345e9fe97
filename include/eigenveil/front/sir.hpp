// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private sliced inverse regression: directions that explain a response.
class Sir final : public PublishedDirections {
 public:
  struct Options {
    Required<Eigen::Index> components;
    Required<std::string> response;                    ///< column, by name or 1-based position; it is no feature
    std::optional<NumericColumn> response_range = {};  ///< public; default: that of the schema
    Eigen::Index slices = 10;                          ///< of equal width within that range
    bool private_slices = false;                       ///< of about equal numbers of rows instead, found privately
    std::vector<double> cuts = {};                     ///< public cut points instead, ascending
    EIGENVEIL_ROW_OPTIONS
    EIGENVEIL_GEP_OPTIONS
  };

  Matrix directions;  ///< d x K
  Vector eigenvalues;
  Matrix slice_means;  ///< one slice per row
  Vector priors;

  Vector eigenvalues_estimate;  ///< with the bias of noise and sampling taken out
  Vector eigenvalues_low;       ///< of their 95% bands
  Vector eigenvalues_high;
  Matrix directions_deviation;  ///< of each weight about cos(angle) times it; more than 1.96 of them is a finding

  explicit Sir(std::shared_ptr<const Model> model);
  static Result<Sir> load(const std::string& path);
};

Result<Sir> sir(const Rows& rows, const Sir::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> sir_cost(const Rows& rows, const Sir::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
