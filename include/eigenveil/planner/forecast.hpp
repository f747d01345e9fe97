#pragma once

#include <vector>

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/planner/public_model.hpp"
#include "eigenveil/rows/bounded_rows.hpp"

namespace eigenveil {

// A forecast is the method itself, run on rows of a public model with the noise of its plan. n rows are stood for by m
// of them: a sum over m rows with noise n/m times smaller is, divided by m, what a sum over n rows is divided by n. So
// a simulation multiplies every mu and epsilon of the plan by n/m, and the program need not know.

/// The plan for m rows that is to them what `plan` is to n rows.
PrivacyPlan scaled_plan(PrivacyPlan plan, double factor);

/// What an answer will carry.
struct AnswerNoise {
  std::string label;
  double deviation;  ///< of the noise in one entry, after division by the number of rows; of a search: in rows
  bool search;       ///< a threshold, found by the sparse vector technique
};

/// Rows of a model on the lattice, to be used again and again. At most `entries` numbers are drawn.
class Sample {
 public:
  static Result<Sample> draw(const PublicModel& model, std::size_t entries, int threads, std::uint64_t seed);

  const PublicModel& model() const { return model_; }
  std::size_t rows() const { return rows_.rows(); }
  const BoundedRows& bounded() const { return rows_; }
  Matrix covariance() const;                      ///< the model's
  const Matrix& truth() const { return truth_; }  ///< the model's top components
  double sampling_error() const { return sampling_error_; }  ///< sin^2 of these rows' own components, without noise

 private:
  Sample(PublicModel model, BoundedRows rows, Matrix truth)
      : model_(std::move(model)), rows_(std::move(rows)), truth_(std::move(truth)) {}
  PublicModel model_;
  BoundedRows rows_;
  Matrix truth_;
  double sampling_error_ = 0;
};

struct Forecast {
  PcaProgram program;
  double error;     ///< mean sin^2 between released and true components
  double lost;      ///< share of the variance of the best components that the released ones do not capture
  double seconds;   ///< of the answers, on this machine, for all rows
  std::size_t bytes;  ///< of the sums, besides the rows
  std::vector<AnswerNoise> noise;
};

/// Runs the program `runs` times with fresh noise.
Result<Forecast> forecast(const Sample& sample, const PcaProgram& program, const Budget& budget, std::size_t rows,
                          int runs = 2);

/// Expected ||Sigma' - Sigma||_F / ||Sigma||_F of a released covariance.
Result<double> forecast_covariance(const Sample& sample, const CovarianceProgram& program, const Budget& budget,
                                   std::size_t rows, int runs = 2);

/// sin^2 = (k - ||V^T Q||_F^2) / k
double sin_squared(const Matrix& V, const Matrix& Q);

/// The rival programs for a task, best guess of the options included: with a sparsity those that use it.
std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns);

struct Choice {
  Forecast best;
  std::vector<Forecast> all;  ///< in the order of `candidates`
};

/// The candidate that loses the least variance.
Result<Choice> choose(const Sample& sample, const std::vector<PcaProgram>& programs, const Budget& budget,
                      std::size_t rows);

}  // namespace eigenveil
