#pragma once

#include "eigenveil/job/choose.hpp"
#include "eigenveil/release/line_chart.hpp"

namespace eigenveil {

/// A question to the planner: nothing in it comes from private rows, and nothing is charged.
struct PlanRequest {
  enum class Task { kPca, kCovariance };
  Task task = Task::kPca;
  PublicModel model;
  Budget budget;
  std::optional<std::size_t> rank;  ///< covariance: of the spiked model; default: found by the method
  double target_error = 0.1;        ///< sin^2 for pca, relative Frobenius error for covariance
  bool curves = false;              ///< the error against rows and against epsilon too
  int threads = 1;
};

struct PlanLine {
  std::string method;
  double error;                ///< sin^2, or relative Frobenius error
  std::optional<double> lost;  ///< pca: share of the variance not captured
  double seconds;              ///< on this machine, for all rows
  std::size_t bytes;           ///< of sums besides the rows
  std::vector<AnswerNoise> noise;
  std::optional<std::size_t> rows_needed;  ///< for the target error, at the same budget; none: more than 4096 n
  std::optional<double> epsilon_needed;    ///< for the target error, with the same rows; none: more than 64 epsilon
  std::vector<std::pair<double, double>> error_by_rows;
  std::vector<std::pair<double, double>> error_by_epsilon;
};

struct PlanReport {
  std::vector<PlanLine> lines;  ///< one a method
  std::size_t best;
  std::vector<std::string> warnings;
};

Result<PlanReport> make_plan(const PlanRequest& request, Observer& observer);

nlohmann::json to_json(const PlanRequest& request, const PlanReport& report);
std::vector<LineChart> plan_charts(const PlanRequest& request, const PlanReport& report);

}  // namespace eigenveil
