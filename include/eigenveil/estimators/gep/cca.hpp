// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/gep/gep.hpp"

namespace eigenveil {

// Canonical correlations of two views of the same rows, z = (x, y):
//   A = [0 S_xy; S_xy^T 0],  B = [S_xx 0; 0 S_yy]
// once: both from one Gram matrix of z. each step: the four products are one Apply with X = [x 0; 0 y].

struct CcaOptions {
  GepOptions gep;
  std::size_t x_columns;  ///< the first columns of a row are x, the others y
};

struct CcaResult {
  Matrix x_weights;     ///< d1 x K: x_weights^T S_xx x_weights = I (once)
  Matrix y_weights;     ///< d2 x K
  Vector correlations;  ///< descending, in [0, 1]
  Vector mean;          ///< of z; zero unless it was released
  double rows;
  double ridge;
  double noise_edge;
  double mean_deviation;  ///< tau: of the noise of an entry of the mean; 0: none was released
  std::vector<std::string> notes;
  Judge judge = {};  ///< of the pairs: once
};

Status check(const RowsShape& shape, const CcaOptions& options);

/// Every answer `fit_cca` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_cca(Adjacency adjacency, const CcaOptions& options);

std::unique_ptr<Estimator> estimator(CcaOptions options);

/// The oracle's plan is what `calibrate` made of `plan_cca`.
Result<CcaResult> fit_cca(Oracle& oracle, const CcaOptions& options);

}  // namespace eigenveil
