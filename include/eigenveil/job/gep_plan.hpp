#pragma once

#include "eigenveil/intake/rows.hpp"
#include "eigenveil/job/plan.hpp"
#include "eigenveil/planner/gep_forecast.hpp"

namespace eigenveil {

/// A question to the planner about cca, fda or sir: nothing in it comes from private rows, and nothing is charged.
struct GepPlanRequest {
  GepModel model;
  Budget budget;
  double target_error = 0.1;  ///< sin^2 against the same rows without noise
  bool curves = false;
  RunOptions run;
};

/// Forecasts both noises, once and each-step; once only while d^2 numbers fit the memory.
Result<PlanReport> make_plan(const GepPlanRequest& request, Observer& observer);

nlohmann::json to_json(const GepPlanRequest& request, const PlanReport& report);
std::vector<LineChart> plan_charts(const GepPlanRequest& request, const PlanReport& report);

}  // namespace eigenveil
