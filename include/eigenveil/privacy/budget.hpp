// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/adjacency.hpp"

namespace eigenveil {

/// How the noise is chosen.
enum class Calibration {
  kTight,  ///< the least that keeps the budget
  kPaper,  ///< what a paper prescribes, for comparison; what it really costs is certified and charged
};

/// What an estimator may spend, and between which neighbours.
struct Budget {
  Epsilon epsilon;
  Delta delta;
  Adjacency adjacency = Adjacency::kReplaceOne;
  Accounting accounting = Accounting::kTight;
};

}  // namespace eigenveil
