#pragma once

#include <map>
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

/// Rows of a model on the lattice, in a few independent draws, to be used again and again.
class Sample {
 public:
  struct Draw {
    BoundedRows rows;
    Eigenbasis basis;
    std::optional<BoundedRows> half;  ///< half as many rows of the same kind, to tell what more rows would change
  };
  static Result<Sample> draw(const PublicModel& model, int threads, std::uint64_t seed, std::size_t draws = 3);

  const PublicModel& model() const { return model_; }
  std::size_t rows() const { return draws_.front().rows.rows(); }  ///< of one draw
  const std::vector<Draw>& draws() const { return draws_; }

  /// sin^2 that a filtered program owes to the fewness of these rows, without noise: what half as many rows err more.
  /// (Sums without a filter have the second moment of all rows, and owe nothing.)
  Result<double> fewness(const PcaProgram& program) const;

 private:
  explicit Sample(PublicModel model) : model_(std::move(model)) {}
  static Result<Sample> draw_here(const PublicModel& model, int threads, std::uint64_t seed, std::size_t draws);
  PublicModel model_;
  std::vector<Draw> draws_;
  mutable std::map<std::string, double> fewness_;  // by description of the program
};

struct Forecast {
  PcaProgram program;
  double error;       ///< mean sin^2 between released and true components
  double lost;        ///< share of the variance of the best components that the released ones do not capture
  double seconds;     ///< of the answers, on this machine, for all rows
  std::size_t bytes;  ///< of the sums, besides the rows
  std::vector<AnswerNoise> noise;
};

/// Runs the program on every draw and averages.
Result<Forecast> forecast(const Sample& sample, const PcaProgram& program, const Budget& budget, std::size_t rows);

/// Expected ||Sigma' - Sigma||_F / ||Sigma||_F of a released covariance.
Result<double> forecast_covariance(const Sample& sample, const CovarianceProgram& program, const Budget& budget,
                                   std::size_t rows);

/// sin^2 = (k - ||V^T Q||_F^2) / k
double sin_squared(const Matrix& V, const Matrix& Q);

/// The rival programs for a task, best guess of the options included: with a sparsity those that use it.
std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns);

struct Choice {
  Forecast best;
  std::vector<Forecast> all;  ///< in the order of `candidates`
};

/// The candidate that loses the least variance; of those that are about as good the first.
Result<Choice> choose(const Sample& sample, const std::vector<PcaProgram>& programs, const Budget& budget,
                      std::size_t rows);

}  // namespace eigenveil
