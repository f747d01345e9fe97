// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/estimator.hpp"

namespace eigenveil {

/// A private picture of the rows: how many lie where along the first two released components.
struct ScorePlot {
  double share = 0.1;  ///< of the squared noise-to-signal budget: mu^2 of these counts over that of all answers
  std::vector<std::string> classes = {};  ///< of the rows, if each has a picture of its own
  std::string class_column = {};
};

/// Refuses a share that cannot be, and fewer than two components.
Status check(const ScorePlot& plot, std::size_t components);

/// The principal components of `pca`, with its plan, and a histogram of scores behind them: one more answer.
std::unique_ptr<Estimator> with_score_plot(std::unique_ptr<Estimator> pca, ScorePlot plot);

}  // namespace eigenveil
