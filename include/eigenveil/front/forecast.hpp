// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/base/result.hpp"
#include "eigenveil/front/required.hpp"
#include "eigenveil/privacy/adjacency.hpp"

namespace eigenveil {

/// What is to be done, and a public guess of what the rows will be like. Which of these apply is up to the task; those
/// that do not are ignored.
struct ForecastOptions {
  Required<std::string> task;  ///< pca, covariance, regress, cca, fda, sir or clip
  Required<Eigen::Index> rows;
  Required<double> epsilon;
  Required<double> delta;
  Adjacency adjacency = Adjacency::kReplaceOne;
  Eigen::Index columns = 0;    ///< pca, covariance, regress (without the target), fda, sir
  Eigen::Index x_columns = 0;  ///< cca, clip
  Eigen::Index y_columns = 0;
  Eigen::Index components = 1;  ///< clip: of the embedding
  std::optional<Eigen::Index> sparsity = {};
  std::optional<double> row_bound = {};   ///< default: 1.5 times a typical row
  std::string spectrum = {};              ///< pca, covariance: file of eigenvalues,
  std::optional<double> gap = {};         ///< or how many times the top ones are the others,
  std::optional<double> decay = {};       ///< or eigenvalue i in proportion to i^-decay (default 1)
  double signal_share = 1;                ///< pca, covariance: share of rows that carry the top components
  std::optional<Eigen::Index> rank = {};  ///< covariance, spiked
  double correlation = 0.5;               ///< cca, clip
  Eigen::Index classes = 2;               ///< fda
  double separation = 2;                  ///< fda: deviations between the means of two classes
  Eigen::Index slices = 10;               ///< sir
  double explained = 0.5;                 ///< sir, regress: share of the response that is explained
  double spread = 0.3;                    ///< regress: deviation of a column over half of its range
  std::optional<double> ridge = {};       ///< regress: as for a fit
  double batch = 64;                      ///< clip: expected pairs in a batch
  Eigen::Index steps = 300;               ///< clip: batches in all
  double target_error = 0.1;
  bool curves = false;  ///< the error against rows and against epsilon too
  int threads = 0;
  Observer* observer = nullptr;
};

/// How well, how fast and with how much noise each method would do it: found by running the methods on made-up rows.
struct Forecasts {
  std::string best;
  std::vector<std::string> warnings;
  std::string json;  ///< everything: as `eigenveil plan --json` prints it
  std::string svg;   ///< the curves, drawn; empty without them
};

/// Nothing is spent.
Result<Forecasts> forecast(const ForecastOptions& options);

}  // namespace eigenveil
