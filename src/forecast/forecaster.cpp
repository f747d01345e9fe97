// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/forecaster.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/query/row_sums.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kDraws = 4;

template <class Body>
double seconds_of(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

/// How long exact sums take here: measured on few rows of few columns, in proportion to the numbers that are
/// multiplied.
class Forecaster::Stopwatch {
 public:
  static Result<std::unique_ptr<Stopwatch>> of(std::size_t columns, int threads) {
    constexpr std::size_t kColumns = 256;
    constexpr Eigen::Index kRows = 2048;
    const Eigen::Index d = std::min(columns, kColumns);
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    RowMajorMatrix X = RowMajorMatrix::NullaryExpr(kRows, d, [&] { return normal(random); });
    Matrix basis = orthonormal(X.transpose().leftCols(std::max<Eigen::Index>(1, d / 2)));
    MemorySource source(std::move(X));
    const auto bound = EIGENVEIL_TRY(RowBound::of(1.5 * std::sqrt(static_cast<double>(d))));
    BoundingOptions options{.bound = bound};
    options.threads = threads;
    auto rows = EIGENVEIL_TRY(BoundedRows::read(source, ColumnMap::identity(source.columns()), options));
    return std::make_unique<Stopwatch>(sums_of(std::move(rows)), std::move(basis), columns);
  }

  Stopwatch(std::unique_ptr<RowSums> sums, Matrix basis, std::size_t columns)
      : sums_(std::move(sums)), basis_(std::move(basis)), columns_(static_cast<double>(columns)) {}

  /// Of all that was asked, over that many rows.
  double seconds(const std::vector<Pass>& passes, std::size_t rows) {
    double total = 0;
    for (const Pass& pass : passes) {
      auto known = std::find_if(known_.begin(), known_.end(), [&](const auto& one) { return one.first == pass; });
      if (known == known_.end()) known = known_.insert(known, {pass, per_row(pass)});
      total += known->second;
    }
    return total * static_cast<double>(rows);
  }

 private:
  double per_row(const Pass& pass) {
    const double few = static_cast<double>(sums_->here().columns()), m = static_cast<double>(sums_->rows());
    if (pass.columns == 0)
      return seconds_of([&] { sums_->sum(Gram{}, Adjacency::kReplaceOne).ok(); }) / m * std::pow(columns_ / few, 2);
    const auto p = std::min<Eigen::Index>(pass.columns, basis_.cols());
    const auto X = Directions::quantise(basis_.leftCols(p));
    if (!X) return 0;
    const double wider = columns_ / few * static_cast<double>(pass.columns) / static_cast<double>(p);
    if (pass.thresholds == 0)
      return seconds_of([&] { sums_->sum(Apply{*X}, Adjacency::kReplaceOne).ok(); }) / m * wider;
    FilteredApply query{*X, {}, FilterMode::kShrink};
    const double top = std::pow(sums_->here().lattice().radius, 2);
    for (std::size_t i = 0; i < pass.thresholds; ++i)
      query.grid.push_back(
          top * std::exp2(-8.0 * static_cast<double>(pass.thresholds - 1 - i) / static_cast<double>(pass.thresholds)));
    return seconds_of([&] { sums_->cells(query).ok(); }) / m * wider;
  }

  std::unique_ptr<RowSums> sums_;
  Matrix basis_;
  double columns_;
  std::vector<std::pair<Pass, double>> known_;
};

Forecaster::Forecaster(const PublicModel& model, int threads)
    : model_(model), threads_(threads), law_(model.law()), samples_(model, threads) {}
Forecaster::~Forecaster() = default;

Result<std::optional<Forecast>> Forecaster::by_law(const Estimator& estimator, const Budget& budget, std::size_t rows,
                                                   std::size_t draws) {
  if (!law_) return std::optional<Forecast>();
  auto found = EIGENVEIL_TRY(forecast(estimator, *law_, budget, rows, draws, threads_));
  if (found) found->bytes = estimator.bytes(model_.columns(), threads_);
  return found;
}

Result<Forecast> Forecaster::operator()(const Estimator& estimator, const Budget& budget, std::size_t rows) {
  if (auto found = EIGENVEIL_TRY(by_law(estimator, budget, rows, kDraws))) return *std::move(found);
  return forecast(estimator, *EIGENVEIL_TRY(samples_.at(rows)), budget, rows);
}

Result<Forecast> Forecaster::glance(const Estimator& estimator, const Budget& budget, std::size_t rows) {
  if (auto found = EIGENVEIL_TRY(by_law(estimator, budget, rows, 1))) return *std::move(found);
  return forecast(estimator, *EIGENVEIL_TRY(samples_.at(rows)), budget, rows);
}

Result<Forecast> Forecaster::timed(const Estimator& estimator, const Budget& budget, std::size_t rows) {
  Forecast found = EIGENVEIL_TRY((*this)(estimator, budget, rows));
  if (found.passes.empty()) return found;
  if (!stopwatch_) stopwatch_ = EIGENVEIL_TRY(Stopwatch::of(model_.columns(), threads_));
  found.seconds += stopwatch_->seconds(found.passes, rows);
  return found;
}

std::vector<std::string> Forecaster::notes() const {
  const Sample* drawn = samples_.own();
  return drawn != nullptr ? model_.notes(*drawn) : std::vector<std::string>();
}

}  // namespace eigenveil
