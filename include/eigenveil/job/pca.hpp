// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/forecast.hpp"

namespace eigenveil {

/// Private PCA from a data file to a released model.
struct PcaJob {
  FitJob fit;
  std::size_t components;
  std::optional<PcaMethod> method = PcaMethod::kGram;  ///< none: by forecast
  std::optional<std::size_t> sparsity = {};            ///< gram, sparse-power (which needs it)
  PowerOptions power = {};                             ///< the power methods; `power` itself takes no filter
  bool choose_rounds = false;                          ///< by forecast
  SpikedOptions spiked = {};                           ///< spiked
  PublicGuess guess = {};                              ///< for forecasts
};

/// Model "pca": components (K x d), eigenvalues (K), mean, offset and scale (d); spiked also noise_variance.
Study study(PcaJob job);

/// How well the methods would do on such rows.
ForecastRequest pca_forecast(const SpectrumModel& model, const Budget& budget);

}  // namespace eigenveil
