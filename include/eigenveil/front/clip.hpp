// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/choices.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// Private heads of a joint embedding of two views, whose vectors are made of unit length first:
///   f(x) = x_weights x - x_offset,  g(y) = y_weights y - y_offset, both made of unit length
class Clip final : public Published {
 public:
  struct Options {
    std::optional<Eigen::Index> dim = {};       ///< of the embedding; default: 16, or as many as the views have
    std::optional<ClipMethod> method = {};      ///< cross, whitened (default), batch or pair
    std::optional<std::string> objective = {};  ///< batch: "infonce" (default) or "linear"
    double temperature = 1;                     ///< batch, pair: of the loss; otherwise of the scores
    std::optional<double> clip = {};            ///< batch, pair: longest gradient; default 1
    std::optional<double> sample_rate = {};     ///< batch, pair: probability of a pair to be in a batch; default 0.005
    std::optional<Eigen::Index> steps = {};     ///< batch, pair: batches in all; default 1000
    std::optional<Optimizer> optimizer = {};    ///< batch, pair: default Adam
    std::optional<double> lr = {};              ///< batch, pair: learning rate; default: the optimizer's
    std::optional<ClipMethod> start = {};       ///< batch, pair: cross or whitened first; default: random
    /// Whose the pairs are: `column` is the path of a text file, an id per line. Default: each is protected by itself.
    std::optional<PersonOptions> person = {};
    EIGENVEIL_RUN_OPTIONS
  };

  Matrix x_weights;  ///< r x d1
  Vector x_offset;
  Matrix y_weights;  ///< r x d2
  Vector y_offset;

  explicit Clip(std::shared_ptr<const Model> model);
  static Result<Clip> load(const std::string& path);

  /// f(x) and g(y) of each row. Embeddings describe single rows: they are not private.
  Result<Matrix> embed_x(const Rows& rows) const;
  Result<Matrix> embed_y(const Rows& rows) const;
};

/// Row i of X and row i of Y are one pair.
Result<Clip> clip(const Rows& X, const Rows& Y, const Clip::Options& options, const Spending& spending);
/// What it would be charged.
Result<std::vector<Cost>> clip_cost(const Rows& X, const Rows& Y, const Clip::Options& options,
                                    const Spending& spending, std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
