// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/forecast.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/forecast/measure.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/query/local_oracle.hpp"
#include "recording_oracle.hpp"

namespace eigenveil {
namespace {

// The noise of many batches by the central limit theorem, mu = q sqrt(T (e^(1/sigma^2) - 1)) (Bu, Dong, Long and Su
// 2020): near enough for a forecast, and thousands of times faster than a certificate.
PrivacyPlan near_plan(PrivacyPlan plan, const Budget& budget) {
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

bool samples_batches(const PrivacyPlan& plan) {
  return std::holds_alternative<PoissonGaussianEvent>(plan.events.back().mechanism);
}

// What is public about `rows` rows that the sample stands for.
RowsShape shape_of(const Sample& sample, std::size_t rows, const Budget& budget) {
  const BoundedRows& first = sample.draws.front().rows;
  RowsShape shape{first.columns(), {}, first.lattice(), budget.adjacency};
  if (budget.adjacency == Adjacency::kReplaceOne) shape.rows = rows;
  return shape;
}

Result<PrivacyPlan> settled_plan(const Estimator& estimator, const RowsShape& shape, const Budget& budget) {
  PrivacyPlan draft = EIGENVEIL_TRY(estimator.plan(shape, budget));
  if (estimator.noise_settled()) return draft;
  if (samples_batches(draft)) return near_plan(std::move(draft), budget);
  return calibrate(draft, budget.epsilon, budget.delta, budget.accounting);
}

LocalOracle oracle_on(const BoundedRows& rows, const PrivacyPlan& plan, std::uint64_t seed) {
  return {rows, reserve_without_ledger(plan), SecureRandom::insecure(seed)};
}

// What the model says, or else what the estimator finds in the same rows without noise.
Truth truth_of(const Draw& draw, const Estimator& estimator, const PrivacyPlan& plan, const Budget& budget) {
  return [&](const std::string& array) {
    if (Matrix M = draw.truth ? draw.truth(array) : Matrix(); M.size() > 0) return M;
    LocalOracle oracle = oracle_on(draw.rows, quiet_plan(plan), 1);
    const auto exact = estimator.fit(oracle, budget);
    return exact ? array_of(*exact, array) : Matrix();
  };
}

// sin^2 that a filtered program owes to the fewness of these rows, without noise: what half as many rows err more.
// (Sums without a filter have the second moment of all rows, and owe nothing.)
Result<double> fewness(const Estimator& estimator, const Sample& sample, Budget budget) {
  const std::string key = estimator.describe();
  if (const auto known = sample.fewness.find(key); known != sample.fewness.end()) return known->second;
  budget.adjacency = Adjacency::kReplaceOne;  // the number of these rows is known
  const PrivacyPlan silent = scaled_plan(EIGENVEIL_TRY(estimator.plan(shape_of(sample, sample.rows(), budget), budget)),
                                         1e9);  // as good as no noise
  const Measure& measure = measure_of(estimator.name());
  const auto error = [&](const BoundedRows& rows, const Draw& draw) -> Result<double> {
    LocalOracle oracle = oracle_on(rows, silent, 1);
    const auto fit = EIGENVEIL_TRY(estimator.fit(oracle, budget));
    return measure.error(truth_of(draw, estimator, silent, budget), fit);
  };
  double sum = 0;
  double squares = 0;
  for (const Draw& draw : sample.draws) {
    if (!draw.half) continue;
    const auto whole = EIGENVEIL_TRY(error(draw.rows, draw));
    const auto half = EIGENVEIL_TRY(error(*draw.half, draw));
    const double more = half - whole;  // c / (m / 2) - c / m = c / m
    sum += more;
    squares += more * more;
  }
  // The mean less its standard error: what is not seen clearly is not taken off.
  const auto count = static_cast<double>(sample.draws.size());
  const double mean = sum / count;
  const double spread = count > 1 ? std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1)) : 0.0;
  return sample.fewness[key] = std::max(0.0, mean - spread);
}

// Of each true component, that none of the found ones captures: 1 - ||V^T u||^2
Vector missed_by(const Matrix& V, const Matrix& U) {
  return (1 - (V.transpose() * U).colwise().squaredNorm().transpose().array()).max(0.0);
}

// One fit's share of the mean of `runs` of them.
Status add_error(Forecast& result, const Estimator& estimator, const Result<Fit>& fit, const Truth& truth,
                 const std::function<double(const Matrix&)>& lost, double runs) {
  // Answers that are nothing but noise are bad input: nothing was learnt.
  if (!fit && fit.error().code != ErrorCode::kBadInput) return fit.error();
  const Measure& measure = measure_of(estimator.name());
  result.error += (fit ? measure.error(truth, *fit) : 1.0) / runs;
  if (!measure.components || !lost) return {};
  const Matrix V = fit ? Matrix(array_of(*fit, "components").transpose()) : Matrix();
  result.lost = result.lost.value_or(0) + (fit ? lost(V) : 1.0) / runs;
  const Matrix U = truth("components").transpose();
  if (result.missed.size() == 0) result.missed = Vector::Zero(U.cols());
  result.missed += (fit ? missed_by(V, U) : Vector(Vector::Ones(U.cols()))) / runs;
  return {};
}

// True: all that it knows of products comes through a filter.
Result<bool> add_run(Forecast& result, const Estimator& estimator, const Draw& draw, const PrivacyPlan& plan,
                     const Budget& budget, std::uint64_t seed, double runs) {
  LocalOracle local = oracle_on(draw.rows, plan, seed);
  RecordingOracle oracle(local, static_cast<double>(draw.rows.rows()));
  const auto begin = std::chrono::steady_clock::now();
  const auto fit = estimator.fit(oracle, budget);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EIGENVEIL_TRY(add_error(result, estimator, fit, truth_of(draw, estimator, plan, budget), draw.lost, runs));
  result.seconds += took.count() / runs;
  result.noise = std::move(oracle.noise);
  return oracle.only_filtered();
}

Result<Forecast> forecast_here(const Estimator& estimator, const Sample& sample, const Budget& budget,
                               std::size_t rows) {
  const PrivacyPlan calibrated = EIGENVEIL_TRY(settled_plan(estimator, shape_of(sample, rows, budget), budget));
  const double factor = static_cast<double>(rows) / static_cast<double>(sample.rows());
  const PrivacyPlan scaled = scaled_plan(calibrated, factor);
  const BoundedRows& first = sample.draws.front().rows;
  Forecast result{.method = estimator.describe(), .bytes = estimator.bytes(first.columns(), first.threads())};
  const auto runs = static_cast<double>(sample.draws.size() * sample.seeds.size());
  bool only_filtered = true;
  for (const Draw& draw : sample.draws)
    for (const std::uint64_t seed : sample.seeds)
      only_filtered &= EIGENVEIL_TRY(add_run(result, estimator, draw, scaled, budget, seed, runs));
  if (!samples_batches(calibrated)) result.seconds *= factor;
  // Of what the filter errs by for want of rows, n rows would have m / n.
  if (factor > 1 && result.error > 0 && only_filtered) {
    const double owed = EIGENVEIL_TRY(fewness(estimator, sample, budget));
    const double error = std::max(result.error - owed * (1 - 1 / factor), result.error / factor);
    if (result.lost) *result.lost *= error / result.error;
    result.missed *= error / result.error;
    result.error = error;
  }
  for (AnswerNoise& answer : result.noise)
    if (answer.search) answer.deviation *= factor;
  return result;
}

// As `calibrate` would settle it, a pure answer counted as a Gaussian one of mu = epsilon: exact without pure answers,
// and else within the few percent of the budget that they have.
Result<PrivacyPlan> near_plan_of(const Estimator& estimator, const RowsShape& shape, const Budget& budget) {
  PrivacyPlan plan = EIGENVEIL_TRY(estimator.plan(shape, budget));
  if (estimator.noise_settled()) return plan;
  if (samples_batches(plan)) return near_plan(std::move(plan), budget);
  double squares = 0;
  for (const PrivacyEvent& event : plan.events) {
    const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism);
    const auto* pure = std::get_if<PureEvent>(&event.mechanism);
    const double weight = gaussian != nullptr ? gaussian->mu.value() : pure != nullptr ? pure->epsilon.value() : 0;
    squares += weight * weight * static_cast<double>(event.count);
  }
  return scaled_plan(std::move(plan), gaussian_mu(budget.epsilon, budget.delta) / std::sqrt(squares));
}

Result<std::optional<Forecast>> forecast_by_law(const Estimator& estimator, RowLaw& law, const Budget& budget,
                                                std::size_t rows, std::size_t draws, bool whole, int threads) {
  RowsShape shape{law.columns(), {}, {law.radius(), 20}, budget.adjacency};
  if (budget.adjacency == Adjacency::kReplaceOne) shape.rows = rows;
  const PrivacyPlan plan = EIGENVEIL_TRY(near_plan_of(estimator, shape, budget));
  // Draws are independent: each on a thread of its own, summed up in order.
  struct Run {
    std::unique_ptr<LawOracle> oracle;
    std::unique_ptr<RecordingOracle> recording;
    std::optional<Result<Fit>> fit;
    double seconds = 0;
  };
  std::vector<Run> runs(draws);
  for (std::size_t i = 0; i < draws; ++i) {
    runs[i].oracle = law.oracle(rows, plan, i + 1, whole);
    runs[i].recording =
        std::make_unique<RecordingOracle>(*runs[i].oracle, static_cast<double>(rows) * runs[i].oracle->stretch());
  }
  Tickets tickets(draws);
  on_threads(std::min(threads, static_cast<int>(draws)), [&] {
    while (const auto i = tickets.next()) {
      const auto begin = std::chrono::steady_clock::now();
      runs[*i].fit = estimator.fit(*runs[*i].recording, budget);
      runs[*i].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
  });
  Forecast result{.method = estimator.describe()};
  for (std::size_t i = 0; i < draws; ++i) {
    Run& run = runs[i];
    if (run.oracle->at_a_loss()) return std::optional<Forecast>();
    const Truth truth = [&](const std::string& array) { return law.truth(array, i + 1, whole); };
    const auto lost = [&](const Matrix& V) { return law.lost(V, i + 1, whole); };
    EIGENVEIL_TRY(add_error(result, estimator, *run.fit, truth, lost, static_cast<double>(draws)));
    result.seconds += run.seconds / static_cast<double>(draws);
    result.noise = std::move(run.recording->noise);
    result.passes = std::move(run.recording->passes);
  }
  return std::optional(std::move(result));
}

}  // namespace

PrivacyPlan scaled_plan(PrivacyPlan plan, double factor) {
  for (PrivacyEvent& event : plan.events) {
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu *= factor;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism))
      pure->epsilon = std::min(tag::PureEpsilon::kMost, pure->epsilon * factor);  // more would be no noise at all
    if (auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism))
      poisson->q = std::min(1.0, poisson->q * factor);
  }
  return plan;
}

PrivacyPlan quiet_plan(PrivacyPlan plan) {
  constexpr double kHardlyAnyNoise = 0x1p19;  // the least that is drawn for a count of rows
  for (PrivacyEvent& event : plan.events) {
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu = kHardlyAnyNoise;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism)) pure->epsilon = tag::PureEpsilon::kMost;
    if (auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism)) poisson->sigma = 1 / kHardlyAnyNoise;
  }
  return plan;
}

Matrix array_of(const Fit& fit, const std::string& name) {
  const auto found =
      std::find_if(fit.arrays.begin(), fit.arrays.end(), [&](const NamedArray& array) { return array.name == name; });
  return found == fit.arrays.end() ? Matrix() : found->values;
}

Result<Forecast> forecast(const Estimator& estimator, const Sample& sample, const Budget& budget, std::size_t rows) {
  return on_one_thread([&] { return forecast_here(estimator, sample, budget, rows); });
}

Result<std::optional<Forecast>> forecast(const Estimator& estimator, RowLaw& law, const Budget& budget,
                                         std::size_t rows, std::size_t draws, int threads) {
  constexpr std::size_t kColumns = 1200;  // of all draws together
  if (measure_of(estimator.name()).components)
    if (auto quick = EIGENVEIL_TRY(forecast_by_law(estimator, law, budget, rows, draws, false, threads))) return quick;
  const std::size_t fewer = std::clamp<std::size_t>(kColumns / law.columns(), 1, draws);
  return forecast_by_law(estimator, law, budget, rows, fewer, true, threads);
}

std::size_t best_of(const std::vector<Forecast>& forecasts) {
  // Earlier ones ask less of the data; a later one must be better by more than a forecast's own error.
  constexpr double kBetter = 0.8;
  std::size_t best = 0;
  for (std::size_t i = 1; i < forecasts.size(); ++i)
    if (forecasts[i].worth() < kBetter * forecasts[best].worth()) best = i;
  return best;
}

}  // namespace eigenveil
