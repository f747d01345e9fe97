#pragma once

#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/job/plan.hpp"

namespace eigenveil {

/// A question to the planner about pairs of vectors: nothing in it comes from private rows, and nothing is charged.
/// Views are Gaussian, `dim` of their coordinates correlated, and then of unit length.
struct ClipPlanRequest {
  std::size_t rows;
  std::size_t x_columns;
  std::size_t y_columns;
  std::size_t dim = 2;
  double correlation = 0.8;
  double batch = 64;                     ///< batch, pair: expected size of a batch; the sample rate is batch / rows
  ClipTraining training = {};            ///< batch, pair: everything else
  std::optional<ClipMethod> start = {};  ///< batch, pair: cross or whitened first
  Budget budget;                         ///< batch and pair are add-remove-one whatever it says
  double target_error = 0.1;  ///< sin^2 between the heads' rows and the shared coordinates, mean of both views
  bool curves = false;
  int threads = 1;
};

Status check(const ClipPlanRequest& request);

/// Forecasts cross, whitened, batch and pair.
Result<PlanReport> make_plan(const ClipPlanRequest& request, Observer& observer);

nlohmann::json to_json(const ClipPlanRequest& request, const PlanReport& report);
std::vector<LineChart> plan_charts(const ClipPlanRequest& request, const PlanReport& report);

}  // namespace eigenveil
