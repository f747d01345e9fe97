#pragma once

#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/planner/forecast.hpp"

namespace eigenveil {

enum class GepTask { kCca, kFda, kSir };
std::string_view name(GepTask task);

/// A guess of what the rows are like, from public knowledge alone: Gaussian rows with unit variances and
///   cca  `components` pairs of directions with correlation `signal`, everything else independent
///   fda  `classes` classes whose means lie `signal` deviations apart
///   sir  a response whose share `signal` (of its variance) is explained by one direction, cut into `classes` equal
///   slices
struct GepModel {
  GepTask task;
  std::size_t rows;     ///< n
  std::size_t columns;  ///< d: of both views together for cca
  std::size_t x_columns = 0;
  std::size_t classes = 2;
  double signal;
  double row_bound;
  std::size_t components = 1;
  std::optional<std::size_t> sparsity = {};
};

/// Refuses a model that cannot be.
Status check(const GepModel& model);

struct GepForecast {
  double error;    ///< mean sin^2 against the solution of the same rows without noise
  double seconds;  ///< of the fit, on this machine, for all rows
  std::vector<AnswerNoise> noise;
};

/// Rows of a model on the lattice, and their solution without noise.
class GepSample {
 public:
  static Result<GepSample> draw(const GepModel& model, int threads, std::uint64_t seed);

  const GepModel& model() const { return model_; }
  std::size_t rows() const { return rows_.rows(); }
  /// Runs the fit with the noise that `budget` asks for if there are `rows` rows.
  Result<GepForecast> forecast(GepNoise noise, const Budget& budget, std::size_t rows) const;

 private:
  GepSample(GepModel model, BoundedRows rows) : model_(model), rows_(std::move(rows)) {}
  Result<PrivacyPlan> plan(GepNoise noise, const Budget& budget) const;
  /// Orthonormal bases of the directions, one a view.
  Result<std::vector<Matrix>> fit(GepNoise noise, const PrivacyPlan& plan, std::uint64_t seed) const;

  GepModel model_;
  BoundedRows rows_;
  std::vector<Matrix> truth_;
};

}  // namespace eigenveil
