// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/gep_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kGepNumbers = std::size_t{1} << 21;  // that a draw may take

// Rows, their class in the last column. Axes are as good as any directions: nothing else here knows them.
RowMajorMatrix draw_rows(const GepModel& model, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const Eigen::Index n = count;
  const Eigen::Index d = model.columns;
  RowMajorMatrix rows = RowMajorMatrix::NullaryExpr(n, d + 1, [&] { return normal(random); });
  const Eigen::Index classes = model.classes;
  if (model.task == GepTask::kCca) {
    const Eigen::Index x = model.x_columns;
    const double rest = std::sqrt(1 - model.signal * model.signal);
    for (std::size_t k = 0; k < model.components; ++k)
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

// Exactly where d^2 fits, by more rounds of the flow where it does not.
std::unique_ptr<Estimator> exact_solver(const GepModel& model) {
  GepOptions options{.components = model.components};
  options.noise = model.columns <= 2000 ? GepNoise::kOnce : GepNoise::kEachStep;
  options.sparsity = model.sparsity;
  if (model.task == GepTask::kCca) return estimator(CcaOptions{options, model.x_columns});
  const auto problem = model.task == GepTask::kFda ? ClassProblem::kFisher : ClassProblem::kSliced;
  return estimator(ClassOptions{options, problem, model.classes});
}

class GepRows final : public PublicModel {
 public:
  explicit GepRows(const GepModel& model) : model_(model) {}
  std::size_t rows() const override { return model_.rows; }
  std::size_t columns() const override { return model_.columns; }
  Status check() const override;
  Result<Sample> draw(std::size_t rows, int threads) const override;

 private:
  GepModel model_;
};

Status GepRows::check() const {
  if (model_.rows < 2) return usage_error("`rows` must be at least 2");
  const bool fda = model_.task == GepTask::kFda;
  if (!(model_.signal > 0 && (fda ? model_.signal <= 100 : model_.signal < 1)))
    return usage_error(fmt::format("`{}` is {}, which is not possible",
                                   fda                            ? "separation"
                                   : model_.task == GepTask::kCca ? "correlation"
                                                                  : "explained",
                                   model_.signal));
  if (model_.task == GepTask::kSir && model_.components != 1)
    return usage_error("plan sir forecasts the first direction: use `components` 1");
  return {};
}

Result<Sample> GepRows::draw(std::size_t rows, int threads) const {
  const std::size_t count =
      std::clamp<std::size_t>(kGepNumbers / model_.columns, std::min<std::size_t>(rows, 200), rows);
  MemorySource source(draw_rows(model_, count, 1));
  const auto bound = EIGENVEIL_TRY(RowBound::of(model_.row_bound));
  BoundingOptions options{.bound = bound};
  options.threads = threads;
  options.class_column = model_.columns;
  const std::vector<std::string> names(source.columns().begin(), source.columns().end() - 1);
  auto bounded = EIGENVEIL_TRY(BoundedRows::read(source, ColumnMap::identity(names), options));
  const auto solver = exact_solver(model_);
  const Budget any{*Epsilon::of(1), *Delta::of(1e-6)};
  const RowsShape shape{bounded.columns(), bounded.rows(), bounded.lattice(), any.adjacency};
  LocalOracle oracle(bounded, reserve_without_ledger(quiet_plan(EIGENVEIL_TRY(solver->plan(shape, any)))),
                     SecureRandom::insecure(1));
  const Fit exact = EIGENVEIL_TRY(solver->fit(oracle, any));
  Sample sample{.seeds = {0, 1}};
  sample.draws.push_back({std::move(bounded), [exact](const std::string& array) { return array_of(exact, array); }});
  return sample;
}

}  // namespace

std::string_view name(GepTask task) { return task == GepTask::kCca ? "cca" : task == GepTask::kFda ? "fda" : "sir"; }

std::unique_ptr<PublicModel> public_model(const GepModel& model) { return std::make_unique<GepRows>(model); }

}  // namespace eigenveil
