// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/gep/gep.hpp"
#include "eigenveil/forecast/gep_model.hpp"
#include "eigenveil/job/forecast.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// What a user may choose about any of the generalized eigenproblems.
struct GepChoices {
  std::size_t components;
  std::optional<GepNoise> noise;  ///< default: once, while d^2 numbers fit half of the memory
  std::optional<std::size_t> sparsity;
  GepStart start = GepStart::kAuto;
  std::optional<double> step;
  std::size_t rounds = 15;
  std::optional<double> ridge;
};

/// The estimator's options; `columns` decides between once and each step if the user did not.
GepOptions gep_options(const GepChoices& choices, const FitJob& job, std::size_t columns);

/// How well both noises, once and each-step, would do on such rows; once only while d^2 numbers fit the memory.
ForecastRequest gep_forecast(const GepModel& model, const Budget& budget, const RunOptions& run);

}  // namespace eigenveil
