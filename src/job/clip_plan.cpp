#include "eigenveil/job/clip_plan.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/job/clip.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "race.hpp"

namespace eigenveil {
namespace {

constexpr double kLargestPlanned = 4096;                // pairs of a batch
constexpr std::size_t kEntries = std::size_t{1} << 20;  // numbers that the draw may take

struct Tried {
  double error;
  double seconds;
  std::vector<AnswerNoise> noise;
};

// The noise of many batches by the central limit theorem, mu = q sqrt(T (e^(1/sigma^2) - 1)) (Bu, Dong, Long and Su
// 2020): near enough for a forecast, and thousands of times faster than a certificate.
Result<PrivacyPlan> near_plan(PrivacyPlan plan, const Budget& budget) {
  const double mu = gaussian_mu(budget.epsilon, budget.delta);
  auto& batches = std::get<PoissonGaussianEvent>(plan.events.back().mechanism);
  const double sampled = batches.q.value() * batches.q * static_cast<double>(plan.events.back().count);
  double start = 0;
  for (const PrivacyEvent& event : plan.events)
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) start += gaussian->mu * gaussian->mu;
  // v = 1 / sigma^2 with start v + sampled (e^v - 1) = mu^2, from above by Newton's steps
  double v = std::log1p(mu * mu / sampled);
  for (int step = 0; step < 50; ++step)
    v -= (start * v + sampled * std::expm1(v) - mu * mu) / (start + sampled * std::exp(v));
  for (PrivacyEvent& event : plan.events)
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu *= std::sqrt(v);
  batches.sigma = 1 / std::sqrt(v);
  return plan;
}

// Rows that stand for any number of rows, and the methods run on them.
class ClipSample {
 public:
  static Result<ClipSample> draw(const ClipPlanRequest& request) {
    const std::size_t d = request.x_columns + request.y_columns;
    const std::size_t count =
        std::clamp<std::size_t>(kEntries / d, std::min<std::size_t>(request.rows, 200), request.rows);
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    RowMajorMatrix rows = RowMajorMatrix::NullaryExpr(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(d),
                                                      [&] { return normal(random); });
    const auto x = static_cast<Eigen::Index>(request.x_columns);
    const double rest = std::sqrt(1 - request.correlation * request.correlation);
    for (Eigen::Index k = 0; k < static_cast<Eigen::Index>(request.dim); ++k)
      rows.col(x + k) = request.correlation * rows.col(k) + rest * rows.col(x + k);
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      rows.row(i).head(x).normalize();
      rows.row(i).tail(rows.cols() - x).normalize();
    }
    MemorySource source(rows);
    BoundingOptions bounding{.bound = *RowBound::of(std::sqrt(2.0))};
    bounding.threads = request.threads;
    auto bounded = EIGENVEIL_TRY(BoundedRows::read(source, ColumnMap::identity(source.columns()), bounding));
    return ClipSample(request, std::move(bounded));
  }

  // n rows are stood for by m of them. Sums: noise n / m times smaller (planner/forecast.hpp). Batches: the same size,
  // so each row of the m is taken n / m times as often.
  Result<Tried> run(ClipMethod method, std::size_t n, const Budget& budget) const {
    const bool trains = method == ClipMethod::kBatch || method == ClipMethod::kPair;
    const Adjacency adjacency = trains ? Adjacency::kAddRemoveOne : budget.adjacency;
    ClipOptions options{.method = method, .dim = request_.dim};
    options.x_columns = request_.x_columns;
    options.training = request_.training;
    options.training.sample_rate = std::min(1.0, request_.batch / static_cast<double>(n));
    if (trains) options.start_by = request_.start;
    follow_budget(options, budget.epsilon, budget.delta);
    const PrivacyPlan shape = plan_clip(adjacency, options);
    const auto plan = EIGENVEIL_TRY(trains ? near_plan(shape, budget)
                                           : calibrate(shape, budget.epsilon, budget.delta, budget.accounting));
    const auto m = static_cast<double>(rows_.rows());
    PrivacyPlan smaller = scaled_plan(plan, static_cast<double>(n) / m);
    Tried tried{};
    for (PrivacyEvent& event : smaller.events)
      if (auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism)) {
        poisson->q = std::min(1.0, request_.batch / m);
        const double clip = options.training.clip;
        const double moved =
            method == ClipMethod::kPair ? PairGradient::bound(options.training.temperature, clip) : 2 * clip;
        tried.noise.push_back({event.label, poisson->sigma * moved, false});
      }
    LocalOracle oracle(rows_, reserve_without_ledger(smaller), SecureRandom::insecure(1));
    for (const PrivacyEvent& event : plan.events)
      if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
        const SumQuery query = event.label == "second moments" ? SumQuery(Gram{})
                               : event.label == "row count"    ? SumQuery(ClassCounts{1})
                                                               : SumQuery(ClassSums{1});
        tried.noise.push_back(
            {event.label,
             deviation_of(empty_sum(query, rows_.columns(), rows_.lattice(), adjacency), gaussian->mu) /
                 static_cast<double>(n),
             false});
      }
    const auto start = std::chrono::steady_clock::now();
    const auto fit = EIGENVEIL_TRY(fit_clip(oracle, options));
    tried.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!trains) tried.seconds *= static_cast<double>(n) / m;
    tried.error = (outside(fit.image_weights) + outside(fit.text_weights)) / 2;
    return tried;
  }

 private:
  ClipSample(const ClipPlanRequest& request, BoundedRows rows) : request_(request), rows_(std::move(rows)) {}

  // sin^2 of the rows of W and the first coordinates
  double outside(const Matrix& W) const {
    const auto r = static_cast<Eigen::Index>(request_.dim);
    const Matrix Q = orthonormal(W.transpose());
    return 1 - Q.topRows(r).squaredNorm() / static_cast<double>(r);
  }

  ClipPlanRequest request_;
  BoundedRows rows_;
};

Goal goal_of(const ClipPlanRequest& request) {
  return {request.rows, request.budget, request.target_error, request.curves};
}

}  // namespace

Status check(const ClipPlanRequest& request) {
  if (request.rows < 2) return usage_error("--rows must be at least 2");
  if (!(request.correlation > 0 && request.correlation < 1))
    return usage_error(fmt::format("--correlation must lie in (0, 1), but is {}", request.correlation));
  if (!(request.batch >= 2 && request.batch <= kLargestPlanned))
    return usage_error(fmt::format("--batch must be from 2 to {}, but is {}", kLargestPlanned, request.batch));
  ClipOptions options{.method = ClipMethod::kPair, .dim = request.dim};
  options.x_columns = request.x_columns;
  options.training = request.training;
  options.start_by = request.start;
  return check(RowsShape{request.x_columns + request.y_columns, {}, {1, 20}, Adjacency::kAddRemoveOne}, options);
}

Result<PlanReport> make_plan(const ClipPlanRequest& request, Observer& observer) {
  EIGENVEIL_TRY(check(request));
  observer.step("simulating the methods on made-up pairs");
  const auto sample = EIGENVEIL_TRY(ClipSample::draw(request));
  const std::size_t d = request.x_columns + request.y_columns;
  std::vector<Contender> contenders;
  for (const ClipMethod method : {ClipMethod::kCross, ClipMethod::kWhitened, ClipMethod::kBatch, ClipMethod::kPair}) {
    const auto found = EIGENVEIL_TRY(sample.run(method, request.rows, request.budget));
    const bool trains = method == ClipMethod::kBatch || method == ClipMethod::kPair;
    const auto bytes = trains ? static_cast<std::size_t>(8 * request.batch * (request.batch + static_cast<double>(d)))
                              : 8 * d * d * (static_cast<std::size_t>(request.threads) + 2);
    contenders.push_back(
        {{std::string(name(method)), found.error, {}, found.seconds, bytes, found.noise, {}, {}, {}, {}},
         [method, &sample](std::size_t rows, const Budget& budget) -> Result<double> {
           const auto one = EIGENVEIL_TRY(sample.run(method, rows, budget));
           return one.error;
         }});
  }
  auto report = EIGENVEIL_TRY(race(std::move(contenders), goal_of(request), observer));
  if (const PlanLine& best = report.lines[report.best]; best.error > 0.5)
    report.warnings.push_back(fmt::format(
        "The noise will drown the signal: even the best method ({}) is forecast to have an error of {:.2g}. "
        "Gather more pairs, use fewer columns, or spend more epsilon.",
        best.method, best.error));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.rows))
    report.warnings.push_back(
        fmt::format("delta {:g} is above 1 / rows: a release that publishes one row in full would satisfy it.",
                    request.budget.delta.value()));
  if (const double spread = PairGradient::spread(request.training.temperature); request.batch < 10 * spread)
    report.warnings.push_back(fmt::format(
        "pair pays only if batches are far larger than e^(2/temperature) = {:.3g} pairs; here they have about {:g}.",
        spread, request.batch));
  return report;
}

nlohmann::json to_json(const ClipPlanRequest& request, const PlanReport& report) {
  nlohmann::json object = {{"task", "clip"},
                           {"rows", request.rows},
                           {"columns", request.x_columns + request.y_columns},
                           {"dim", request.dim},
                           {"epsilon", request.budget.epsilon.value()},
                           {"delta", request.budget.delta.value()},
                           {"sample_rate", std::min(1.0, request.batch / static_cast<double>(request.rows))},
                           {"target_error", request.target_error},
                           {"best", report.lines[report.best].method},
                           {"warnings", report.warnings},
                           {"methods", lines_json(report, request.curves)}};
  if (request.start) object["start"] = name(*request.start);
  return object;
}

std::vector<LineChart> plan_charts(const ClipPlanRequest& request, const PlanReport& report) {
  return charts_of(report, goal_of(request), "forecast error, sin^2");
}

}  // namespace eigenveil
