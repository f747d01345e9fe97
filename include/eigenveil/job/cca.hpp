// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/gep.hpp"

namespace eigenveil {

/// Private canonical correlations of two groups of columns, from a data file to a released model.
struct CcaJob {
  FitJob fit;
  GepChoices gep;
  std::vector<std::string> x_columns;  ///< names, 1-based positions or ranges
  std::vector<std::string> y_columns;
};

/// Model "cca": x_weights (d1 x K), y_weights (d2 x K), correlations (K), mean, offset and scale (d1 + d2).
Result<Study> study(CcaJob job);

}  // namespace eigenveil
