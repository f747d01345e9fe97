#pragma once

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// A private covariance matrix from a data file to a released model.
struct CovarianceJob {
  FitJob fit;
  std::optional<PcaMethod> method = PcaMethod::kGram;  ///< gram or spiked; none: the planner chooses
  SpikedOptions spiked = {};
  bool dense = false;  ///< spiked: write the d x d matrix too
  PublicGuess guess = {};
};

/// Model "covariance": as "pca", with noise_variance, and for gram (or dense) covariance.
Study study(CovarianceJob job);

}  // namespace eigenveil
