// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private discriminant directions of labelled rows.
class Fda final : public PublishedDirections {
 public:
  struct Options {
    Required<Eigen::Index> components;
    Required<std::string> label;            ///< column of the class, by name or 1-based position; it is no feature
    std::vector<std::string> classes = {};  ///< public labels, as text: {"0", "1"}; default: those of the schema
    bool drop_unlisted = false;             ///< rows of other labels count as zero; else they are an error
    EIGENVEIL_ROW_OPTIONS
    EIGENVEIL_GEP_OPTIONS
  };

  Matrix scalings;  ///< d x K
  Vector eigenvalues;
  Matrix class_means;  ///< one class per row
  Vector priors;
  std::vector<std::string> classes;

  Vector eigenvalues_estimate;  ///< with the bias of noise and sampling taken out
  Vector eigenvalues_low;       ///< of their 95% bands
  Vector eigenvalues_high;
  Matrix scalings_deviation;  ///< of each weight about cos(angle) times it; more than 1.96 of them is a finding

  explicit Fda(std::shared_ptr<const Model> model);
  static Result<Fda> load(const std::string& path);
  /// The class of each row: the nearest class mean among the scores, priors counted in. Not private.
  Result<std::vector<std::string>> predict(const Rows& rows) const;
};

Result<Fda> fda(const Rows& rows, const Fda::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> fda_cost(const Rows& rows, const Fda::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
