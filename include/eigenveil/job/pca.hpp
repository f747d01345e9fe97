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
  Scale scale = Scale::kRange;                         ///< correlation: gram
  PowerOptions power = {};                             ///< the power methods; `power` itself takes no filter
  bool choose_rounds = false;                          ///< by forecast
  SpikedOptions spiked = {};                           ///< spiked
  GivenStart start = {};                               ///< the power methods
  PublicGuess guess = {};                              ///< for forecasts
  std::optional<double> score_plot = {};  ///< share of the budget for a picture of the rows; by class, if they have one
};

/// Model "pca": components (K x d), eigenvalues (K), mean, offset and scale (d); spiked also
/// noise_variance, correlations also spread (d), a score plot also score_counts and score_edges.
Study study(PcaJob job);

/// The components of a released model, to begin with. One that is not private, or is so under a model alone, is
/// refused: what begins there would promise no more.
Result<GivenStart> read_start(const std::string& path, bool people);

/// How well the methods would do on such rows.
/// `score_plot`: what a picture of the rows takes of the budget.
ForecastRequest pca_forecast(const SpectrumModel& model, const Budget& budget, std::optional<double> score_plot = {});

}  // namespace eigenveil
