// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/forecast/forecast.hpp"

namespace eigenveil {

/// Forecasts for rows of one model, at any number of them and any budget: by the law of the rows where the model has
/// one and it tells what the estimator asks for, and otherwise on rows that are drawn.
class Forecaster {
 public:
  Forecaster(const PublicModel& model, int threads);
  ~Forecaster();
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  /// The mean of some draws, always the same ones.
  Result<Forecast> operator()(const Estimator& estimator, const Budget& budget, std::size_t rows);
  /// One draw of the law; the same as above where there is none.
  Result<Forecast> glance(const Estimator& estimator, const Budget& budget, std::size_t rows);
  /// The same as the first, with `seconds`.
  Result<Forecast> timed(const Estimator& estimator, const Budget& budget, std::size_t rows);

  /// What a reader of these forecasts should know.
  std::vector<std::string> notes() const;

 private:
  class Stopwatch;
  Result<std::optional<Forecast>> by_law(const Estimator& estimator, const Budget& budget, std::size_t rows,
                                         std::size_t draws);

  const PublicModel& model_;
  int threads_;
  std::unique_ptr<RowLaw> law_;
  Samples samples_;
  std::unique_ptr<Stopwatch> stopwatch_;
};

}  // namespace eigenveil
