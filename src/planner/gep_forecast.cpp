#include "eigenveil/planner/gep_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kEntries = std::size_t{1} << 21;  // numbers that a draw may take
constexpr int kRuns = 2;

// Rows, their class in the last column. Axes are as good as any directions: nothing else here knows them.
RowMajorMatrix draw_rows(const GepModel& model, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto n = static_cast<Eigen::Index>(count);
  const auto d = static_cast<Eigen::Index>(model.columns);
  RowMajorMatrix rows = RowMajorMatrix::NullaryExpr(n, d + 1, [&] { return normal(random); });
  const auto classes = static_cast<Eigen::Index>(model.classes);
  if (model.task == GepTask::kCca) {
    const auto x = static_cast<Eigen::Index>(model.x_columns);
    const double rest = std::sqrt(1 - model.signal * model.signal);
    for (Eigen::Index k = 0; k < static_cast<Eigen::Index>(model.components); ++k)
      rows.col(x + k) = model.signal * rows.col(k) + rest * rows.col(x + k);
    rows.col(d).setZero();
  } else if (model.task == GepTask::kFda) {
    for (Eigen::Index i = 0; i < n; ++i) {
      const Eigen::Index c = i % classes;
      if (c < d) rows(i, c) += model.signal / std::sqrt(2.0);
      rows(i, d) = static_cast<double>(c);
    }
  } else {
    // y = sqrt(r) x_1 + sqrt(1 - r) g, then its rank
    const Vector y = std::sqrt(model.signal) * rows.col(0) + std::sqrt(1 - model.signal) * rows.col(d);
    std::vector<Eigen::Index> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return y[a] < y[b]; });
    for (std::size_t i = 0; i < count; ++i)
      rows(order[i], d) =
          std::floor(static_cast<double>(i) / static_cast<double>(count) * static_cast<double>(classes));
  }
  return rows;
}

GepOptions options_for(const GepModel& model, GepNoise noise) {
  GepOptions options{.components = model.components};
  options.noise = noise;
  options.sparsity = model.sparsity;
  return options;
}

ClassOptions class_options(const GepModel& model, GepNoise noise) {
  const auto problem = model.task == GepTask::kFda ? ClassProblem::kFisher : ClassProblem::kSliced;
  return {options_for(model, noise), problem, model.classes};
}

double distance(const std::vector<Matrix>& truth, const std::vector<Matrix>& found) {
  double error = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    error += sin_squared(truth[i], found[i]) / static_cast<double>(truth.size());
  return error;
}

// The question that an event of a plan stands for, as far as its noise goes.
Result<SumQuery> query_of(const std::string& label, const GepModel& model) {
  if (label == "row count") return SumQuery(ClassCounts{1});
  if (label == "covariance") return SumQuery(Gram{});
  if (label.ends_with("counts")) return SumQuery(ClassCounts{model.classes});
  if (label.ends_with("sums")) return SumQuery(ClassSums{model.classes});
  const std::size_t width = model.components * (model.task == GepTask::kCca ? 2 : 1);
  const auto X = EIGENVEIL_TRY(Directions::quantise(
      Matrix::Identity(static_cast<Eigen::Index>(model.columns), static_cast<Eigen::Index>(width))));
  return SumQuery(Apply{X});
}

}  // namespace

std::string_view name(GepTask task) { return task == GepTask::kCca ? "cca" : task == GepTask::kFda ? "fda" : "sir"; }

Status check(const GepModel& model) {
  const RowsShape shape{model.columns, {}, {1, 20}, Adjacency::kReplaceOne};
  const bool cca = model.task == GepTask::kCca;
  if (model.rows < 2) return usage_error("--rows must be at least 2");
  if (model.task == GepTask::kFda ? !(model.signal > 0 && model.signal <= 100)
                                  : !(model.signal > 0 && model.signal < 1))
    return usage_error(fmt::format("--{} is {}, which is not possible",
                                   cca                           ? "correlation"
                                   : model.task == GepTask::kFda ? "separation"
                                                                 : "explained",
                                   model.signal));
  if (model.task == GepTask::kSir && model.components != 1)
    return usage_error("plan sir forecasts the first direction: use --components 1");
  if (cca) return check(shape, CcaOptions{options_for(model, GepNoise::kOnce), model.x_columns});
  return check(shape, class_options(model, GepNoise::kOnce));
}

Result<GepSample> GepSample::draw(const GepModel& model, int threads, std::uint64_t seed) {
  EIGENVEIL_TRY(check(model));
  const std::size_t count =
      std::clamp<std::size_t>(kEntries / model.columns, std::min<std::size_t>(model.rows, 200), model.rows);
  MemorySource source(draw_rows(model, count, seed));
  const auto bound = EIGENVEIL_TRY(RowBound::of(model.row_bound));
  BoundingOptions options{.bound = bound};
  options.threads = threads;
  options.class_column = model.columns;
  const std::vector<std::string> names(source.columns().begin(), source.columns().end() - 1);
  auto bounded = EIGENVEIL_TRY(BoundedRows::read(source, ColumnMap::identity(names), options));
  GepSample sample(model, std::move(bounded));
  // With hardly any noise: exactly where d^2 fits, by more rounds of the flow where it does not.
  const GepNoise noise = model.columns <= 2000 ? GepNoise::kOnce : GepNoise::kEachStep;
  PrivacyPlan plan = model.task == GepTask::kCca
                         ? plan_cca(Adjacency::kReplaceOne, {options_for(model, noise), model.x_columns})
                         : plan_classes(Adjacency::kReplaceOne, class_options(model, noise));
  constexpr double kHardlyAnyNoise = 0x1p19;  // the least that is drawn for a count of rows
  for (PrivacyEvent& event : plan.events) event.mechanism = GaussianEvent{kHardlyAnyNoise};
  sample.truth_ = EIGENVEIL_TRY(sample.fit(noise, plan, seed));
  return sample;
}

Result<PrivacyPlan> GepSample::plan(GepNoise noise, const Budget& budget) const {
  const PrivacyPlan shape = model_.task == GepTask::kCca
                                ? plan_cca(budget.adjacency, {options_for(model_, noise), model_.x_columns})
                                : plan_classes(budget.adjacency, class_options(model_, noise));
  return calibrate(shape, budget.epsilon, budget.delta, budget.accounting);
}

Result<std::vector<Matrix>> GepSample::fit(GepNoise noise, const PrivacyPlan& plan, std::uint64_t seed) const {
  LocalOracle oracle(rows_, reserve_without_ledger(plan), SecureRandom::insecure(seed));
  if (model_.task == GepTask::kCca) {
    const auto found = EIGENVEIL_TRY(fit_cca(oracle, {options_for(model_, noise), model_.x_columns}));
    return std::vector<Matrix>{orthonormal(found.x_weights), orthonormal(found.y_weights)};
  }
  const auto found = EIGENVEIL_TRY(fit_classes(oracle, class_options(model_, noise)));
  return std::vector<Matrix>{orthonormal(found.solution.vectors)};
}

Result<GepForecast> GepSample::forecast(GepNoise noise, const Budget& budget, std::size_t rows) const {
  const auto calibrated = EIGENVEIL_TRY(plan(noise, budget));
  const double factor = static_cast<double>(rows) / static_cast<double>(rows_.rows());
  const PrivacyPlan scaled = scaled_plan(calibrated, factor);
  GepForecast result{0, 0, {}};
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; ++run) {
    const auto found = fit(noise, scaled, static_cast<std::uint64_t>(run));
    // No class above its noise: nothing was learnt.
    result.error += (found ? distance(truth_, *found) : 1.0) / kRuns;
  }
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kRuns * std::max(1.0, factor);
  for (const PrivacyEvent& event : calibrated.events) {
    const auto query = EIGENVEIL_TRY(query_of(event.label, model_));
    const PrivateSum sum = empty_sum(query, rows_.columns(), rows_.lattice(), budget.adjacency);
    const Mu mu = std::get<GaussianEvent>(event.mechanism).mu;
    result.noise.push_back({event.label, deviation_of(sum, mu) / static_cast<double>(rows), false});
  }
  return result;
}

}  // namespace eigenveil
