// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/forecast.hpp"

namespace eigenveil {

/// A private covariance matrix from a data file to a released model.
struct CovarianceJob {
  FitJob fit;
  std::optional<PcaMethod> method = PcaMethod::kGram;  ///< gram or spiked; none: by forecast
  SpikedOptions spiked = {};
  bool dense = false;  ///< spiked: write the d x d matrix too
  PublicGuess guess = {};
  Scale scale = Scale::kRange;  ///< correlation: gram
};

/// Model "covariance": as "pca", with noise_variance, and for gram (or dense) covariance. With correlations its
/// components and eigenvalues are theirs, and it has correlation (d x d) and spread (d) too.
Study study(CovarianceJob job);

/// How well the methods would do on such rows. `rank`: of the spiked model; default: found by the method.
ForecastRequest covariance_forecast(const SpectrumModel& model, std::optional<std::size_t> rank, const Budget& budget);

}  // namespace eigenveil
