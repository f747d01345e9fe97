#pragma once

#include <functional>

#include "eigenveil/job/plan.hpp"

namespace eigenveil {

/// A method with everything it needs to be tried at other sizes.
struct Contender {
  PlanLine line;
  std::function<Result<double>(std::size_t rows, const Budget& budget)> error;
};

/// What the contenders are asked for.
struct Goal {
  std::size_t rows;
  Budget budget;
  double target_error;
  bool curves;
};

/// Finds the rows and the epsilon that each contender needs, draws its curves if asked, and tells the best.
Result<PlanReport> race(std::vector<Contender> contenders, const Goal& goal, Observer& observer);

nlohmann::json lines_json(const PlanReport& report, bool curves);
std::vector<LineChart> charts_of(const PlanReport& report, const Goal& goal, const std::string& error);

}  // namespace eigenveil
