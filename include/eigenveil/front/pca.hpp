// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/choices.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private principal components.
class Pca final : public PublishedComponents {
 public:
  struct Options {
    Required<Eigen::Index> components;
    EIGENVEIL_ROW_OPTIONS
    std::optional<PcaMethod> method = {};  ///< none: pilot, gram of few columns, forecasts with spectrum or sparsity
    Scale scale = Scale::kRange;           ///< correlation: components of the correlation matrix (gram)
    std::optional<Eigen::Index> sparsity = {};  ///< gram, sparse-power: columns that may have a loading
    std::optional<Eigen::Index> rounds = {};    ///< power methods; default 8, or forecast with the method
    std::string start = {};  ///< power methods: file of a released model, whose components the rounds begin with
    RowFilter filter = RowFilter::kShrink;           ///< power methods
    double grid_ratio = 1.25;                        ///< power methods: of consecutive thresholds
    std::optional<Eigen::Index> rank = {};           ///< spiked; default: components
    Guarantee guarantee = Guarantee::kStrict;        ///< spiked
    std::optional<double> noise_variance = {};       ///< spiked: if it is known; default: released
    std::optional<double> spike = {};                ///< spiked, model: if it is known
    std::optional<double> score_plot = {};           ///< share of the budget for a picture of the rows: 0.1
    std::string label = {};                          ///< column of a class, no feature: a picture for each
    std::vector<std::string> classes = {};           ///< its public labels; default: those of the schema
    bool drop_unlisted = false;                      ///< rows of other labels count as zero; else they are an error
    std::string spectrum = {};                       ///< forecasts: file of public eigenvalues
    std::optional<Eigen::Index> expected_rows = {};  ///< forecasts: where the number of rows is private
    double signal_share = 1;                         ///< forecasts: share of rows that carry the components
  };

  Matrix score_counts;  ///< (classes m) x m: noisy counts of rows by their first two scores; empty without `score_plot`
  Matrix score_edges;   ///< 2 x (m + 1): of the cells

  explicit Pca(std::shared_ptr<const Model> model)
      : PublishedComponents(std::move(model)), score_counts(array("score_counts")), score_edges(array("score_edges")) {}
  static Result<Pca> load(const std::string& path);
};

Result<Pca> pca(const Rows& rows, const Pca::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> pca_cost(const Rows& rows, const Pca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
