#include "eigenveil/planner/forecast.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil {
namespace {

/// Passes every ask on and writes down the noise of its answer.
class RecordingOracle final : public Oracle {
 public:
  RecordingOracle(Oracle& oracle, double rows) : oracle_(oracle), rows_(rows) {}

  RowsShape shape() const override { return oracle_.shape(); }
  bool complete() const override { return oracle_.complete(); }
  Status recenter(const Vector& mean, RowBound radius) override { return oracle_.recenter(mean, radius); }
  Status remap(const LinearMap& M, RowBound radius) override { return oracle_.remap(M, radius); }
  const PrivacyPlan& plan() const override { return oracle_.plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override {
    return recorded(label, oracle_.ask(label, query), rows_);
  }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override {
    record_search(label);
    return oracle_.first_at_most(label, query, target);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override {
    record_search(search);
    auto answer = oracle_.ask_filtered(search, product, query, target);
    if (answer) noise.push_back({product, answer->product.deviation() / rows_, false});
    return answer;
  }
  Result<Answer> ask_model(const std::string& label, const ModelQuery& query) override {
    return recorded(label, oracle_.ask_model(label, query), 1);
  }

  std::vector<AnswerNoise> noise;

 private:
  Result<Answer> recorded(const std::string& label, Result<Answer> answer, double rows) {
    if (answer) noise.push_back({label, answer->deviation() / rows, false});
    return answer;
  }
  // Two Laplace variables of scale 2 / epsilon: deviation 4 / epsilon
  void record_search(const std::string& label) {
    if (const auto epsilon = planned_epsilon(plan(), label)) noise.push_back({label, 4 / *epsilon, true});
  }
  Oracle& oracle_;
  double rows_;
};

// 1 - tr(V^T Sigma V) / (sum of the top eigenvalues)
double lost_variance(const Vector& spectrum, const Eigenbasis& basis, const Matrix& V) {
  const double captured = spectrum.dot(basis.coordinates(V).rowwise().squaredNorm());
  return std::max(0.0, 1 - captured / spectrum.head(V.cols()).sum());
}

// Three times the columns, so that the second moment of half of the rows can be set too; at most 128 MB of numbers.
std::size_t sample_rows(std::size_t rows, std::size_t columns) {
  constexpr std::size_t kRows = 3000;
  constexpr std::size_t kEntries = std::size_t{1} << 24;
  const std::size_t wanted = std::min(std::max(kRows, 3 * columns), std::max<std::size_t>(200, kEntries / columns));
  return std::min(rows, wanted);
}

LocalOracle oracle_on(const BoundedRows& rows, const PrivacyPlan& plan) {
  return {rows, reserve_without_ledger(plan), SecureRandom::insecure(1)};
}

}  // namespace

double sin_squared(const Matrix& V, const Matrix& Q) {
  const auto k = static_cast<double>(Q.cols());
  return std::max(0.0, (k - (V.transpose() * Q).squaredNorm()) / k);
}

PrivacyPlan scaled_plan(PrivacyPlan plan, double factor) {
  for (PrivacyEvent& event : plan.events) {
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu *= factor;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism))
      pure->epsilon = std::min(tag::PureEpsilon::kMost, pure->epsilon * factor);  // more would be no noise at all
  }
  return plan;
}

Result<Sample> Sample::draw(const PublicModel& model, int threads, std::uint64_t seed, std::size_t draws) {
  return on_one_thread([&] { return draw_here(model, threads, seed, draws); });
}

Result<Sample> Sample::draw_here(const PublicModel& model, int threads, std::uint64_t seed, std::size_t draws) {
  Sample sample(model);
  const auto bound = EIGENVEIL_TRY(RowBound::of(model.row_bound));
  BoundingOptions options{.bound = bound};
  options.threads = threads;
  const auto d = static_cast<std::size_t>(model.spectrum.size());
  const std::size_t m = sample_rows(model.rows, d);
  const auto bounded = [&](const Eigenbasis& basis, std::size_t rows, std::uint64_t draw_seed) {
    MemorySource source(draw_rows(model, basis, rows, draw_seed));
    return BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
  };
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Eigenbasis basis(model, seed + i);
    auto rows = EIGENVEIL_TRY(bounded(basis, m, seed + i));
    sample.draws_.push_back({std::move(rows), basis, {}});
    if (m == model.rows || m / 2 < d + d / 4) continue;
    auto half = EIGENVEIL_TRY(bounded(basis, m / 2, seed + i + 1000));
    sample.draws_.back().half = std::move(half);
  }
  return sample;
}

Result<double> Sample::fewness(const PcaProgram& program) const {
  const bool power = program.method == PcaMethod::kAdaptivePower || program.method == PcaMethod::kSparsePower;
  if (!power || program.power.filter == RowFilter::kOff) return 0.0;
  const std::string key = describe(program);
  if (const auto known = fewness_.find(key); known != fewness_.end()) return known->second;
  const PrivacyPlan silent =
      scaled_plan(plan_power(Adjacency::kReplaceOne, program.options, program.power), 1e9);  // as good as no noise
  const auto error = [&](const BoundedRows& rows, const Eigenbasis& basis) -> Result<double> {
    LocalOracle oracle = oracle_on(rows, silent);
    const auto done = EIGENVEIL_TRY(fit_power(oracle, program.options, program.power));
    return sin_squared(basis.top(), done.components);
  };
  double sum = 0;
  double squares = 0;
  for (const Draw& draw : draws_) {
    if (!draw.half) continue;
    const auto whole = EIGENVEIL_TRY(error(draw.rows, draw.basis));
    const auto half = EIGENVEIL_TRY(error(*draw.half, draw.basis));
    const double more = half - whole;  // c / (m / 2) - c / m = c / m
    sum += more;
    squares += more * more;
  }
  // The mean less its standard error: what is not seen clearly is not taken off.
  const auto count = static_cast<double>(draws_.size());
  const double mean = sum / count;
  const double spread = count > 1 ? std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1)) : 0.0;
  return fewness_[key] = std::max(0.0, mean - spread);
}

namespace {
Result<Forecast> forecast_here(const Sample& sample, const PcaProgram& program, const Budget& budget,
                               std::size_t rows) {
  const auto calibrated = EIGENVEIL_TRY(plan(program, budget));
  const auto m = static_cast<double>(sample.rows());
  const double factor = static_cast<double>(rows) / m;
  const PrivacyPlan scaled = scaled_plan(calibrated, factor);
  const auto columns = static_cast<std::size_t>(sample.model().spectrum.size());
  Forecast result{program, 0, 0, 0, sums_bytes(program, columns, sample.draws().front().rows.threads()), {}};
  const auto runs = static_cast<double>(sample.draws().size());
  for (const Sample::Draw& draw : sample.draws()) {
    LocalOracle local = oracle_on(draw.rows, scaled);
    RecordingOracle oracle(local, m);
    const auto begin = std::chrono::steady_clock::now();
    const auto done = EIGENVEIL_TRY(fit(program, budget, oracle));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const Matrix truth = draw.basis.top();
    const Matrix& V = done.pca.components;
    const Eigen::Index common = std::min(V.cols(), truth.cols());
    result.error += sin_squared(truth.leftCols(common), V.leftCols(common)) / runs;
    result.lost += lost_variance(sample.model().spectrum, draw.basis, V) / runs;
    result.seconds += took.count() * factor / runs;
    result.noise = oracle.noise;
  }
  // Of what the filter errs by for want of rows, n rows would have m / n.
  const auto fewness = EIGENVEIL_TRY(sample.fewness(program));
  if (factor > 1 && result.error > 0) {
    const double error = std::max(result.error - fewness * (1 - 1 / factor), result.error / factor);
    result.lost *= error / result.error;
    result.error = error;
  }
  for (AnswerNoise& answer : result.noise)
    if (answer.search) answer.deviation *= factor;
  return result;
}

Result<double> forecast_covariance_here(const Sample& sample, const CovarianceProgram& program, const Budget& budget,
                                        std::size_t rows) {
  const auto calibrated = EIGENVEIL_TRY(plan(program, budget));
  const PrivacyPlan scaled = scaled_plan(calibrated, static_cast<double>(rows) / static_cast<double>(sample.rows()));
  double error = 0;
  for (const Sample::Draw& draw : sample.draws()) {
    const Matrix truth = draw.basis.covariance(sample.model().spectrum);
    LocalOracle oracle = oracle_on(draw.rows, scaled);
    const auto done = EIGENVEIL_TRY(fit(program, budget, oracle));
    error += (done.dense() - truth).norm() / truth.norm() / static_cast<double>(sample.draws().size());
  }
  return error;
}

}  // namespace

Result<Forecast> forecast(const Sample& sample, const PcaProgram& program, const Budget& budget, std::size_t rows) {
  return on_one_thread([&] { return forecast_here(sample, program, budget, rows); });
}

Result<double> forecast_covariance(const Sample& sample, const CovarianceProgram& program, const Budget& budget,
                                   std::size_t rows) {
  return on_one_thread([&] { return forecast_covariance_here(sample, program, budget, rows); });
}

std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns) {
  constexpr std::size_t kMostColumns = 4096;  // a d x d matrix beyond this is the wrong tool
  std::vector<PcaProgram> programs;
  if (columns <= kMostColumns) programs.push_back({PcaMethod::kGram, options});
  const PcaMethod power = options.sparsity ? PcaMethod::kSparsePower : PcaMethod::kAdaptivePower;
  for (const std::size_t rounds : {4, 8, 16}) programs.push_back({power, options, {.rounds = rounds}});
  return programs;
}

Result<Choice> choose(const Sample& sample, const std::vector<PcaProgram>& programs, const Budget& budget,
                      std::size_t rows) {
  std::vector<Forecast> all;
  for (const PcaProgram& program : programs) {
    auto one = EIGENVEIL_TRY(forecast(sample, program, budget, rows));
    all.push_back(std::move(one));
  }
  // Earlier ones ask less of the data; a later one must be better by more than a forecast's own error.
  constexpr double kBetter = 0.8;
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].lost < kBetter * all[best].lost) best = i;
  return Choice{all[best], all};
}

}  // namespace eigenveil
