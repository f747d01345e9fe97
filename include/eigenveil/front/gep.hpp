// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private solutions of A v = lambda B v for two matrices of the caller's own. The guarantee is as good as the two
/// sensitivities.
class Gep final : public PublishedDirections {
 public:
  struct Options {
    Required<Eigen::Index> components;
    Required<double> sensitivity_a;  ///< how far replacing one row can move A as it is given, in Frobenius norm
    Required<double> sensitivity_b;  ///< the same of B
    Required<Eigen::Index> rows;     ///< public number of rows behind the matrices, for the record
    std::string person = {};         ///< column that said whose a row was: all three above are then about people
    EIGENVEIL_GEP_OPTIONS
    EIGENVEIL_RUN_OPTIONS
  };

  Matrix vectors;  ///< d x K
  Vector eigenvalues;

  Vector eigenvalues_estimate;  ///< with the bias of noise and sampling taken out
  Vector eigenvalues_low;       ///< of their 95% bands
  Vector eigenvalues_high;
  Matrix vectors_deviation;  ///< of each weight about cos(angle) times it; more than 1.96 of them is a finding

  explicit Gep(std::shared_ptr<const Model> model);
  static Result<Gep> load(const std::string& path);
};

/// A and B are d x d and symmetric. `deviation` is that of B's entries as they are given.
Result<Gep> gep(const Rows& A, const Rows& B, const Gep::Options& options, const Spending& spending);

}  // namespace eigenveil
