#include "eigenveil/planner/forecast.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

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
  Result<Released<Matrix>> ask(const std::string& label, const SumQuery& query, double mu) override {
    noise.push_back({label, noise_of(query, mu) / rows_, false});
    return oracle_.ask(label, query, mu);
  }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target, double epsilon) override {
    record_search(label, epsilon);
    return oracle_.first_at_most(label, query, target, epsilon);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target, double epsilon, double mu) override {
    record_search(search, epsilon);
    auto answer = oracle_.ask_filtered(search, product, query, target, epsilon, mu);
    if (answer) noise.push_back({product, noise_of(query, *answer->chosen, mu) / rows_, false});
    return answer;
  }
  Result<Released<Matrix>> ask_model(const std::string& label, const ModelQuery& query, double mu) override {
    const double assumed = assumed_sensitivity(query, shape().lattice).value() * unit(query, shape().lattice);
    noise.push_back({label, assumed / (std::sqrt(2.0) * mu), false});
    return oracle_.ask_model(label, query, mu);
  }

  std::vector<AnswerNoise> noise;

 private:
  // Two Laplace variables of scale 2 / epsilon: deviation 4 / epsilon
  void record_search(const std::string& label, double epsilon) { noise.push_back({label, 4 / epsilon, true}); }
  Oracle& oracle_;
  double rows_;
};

double lost_variance(const Sample& sample, const Matrix& components) {
  // Sigma = U diag(top) U^T + rest on the axes; tr(V^T Sigma V) against the sum of the top eigenvalues
  const auto k = static_cast<Eigen::Index>(sample.model().components);
  const Vector& spectrum = sample.model().spectrum;
  Vector rest = spectrum;
  if (k < spectrum.size()) rest.head(k).setConstant(spectrum[k]);
  const Matrix along = sample.truth().transpose() * components;
  const Matrix outside = components - sample.truth() * along;
  const double captured = (spectrum.head(k).asDiagonal() * along).cwiseProduct(along).sum() +
                          (rest.asDiagonal() * outside).cwiseProduct(outside).sum();
  return std::max(0.0, 1 - captured / spectrum.head(components.cols()).sum());
}

}  // namespace

double sin_squared(const Matrix& V, const Matrix& Q) {
  const auto k = static_cast<double>(Q.cols());
  return std::max(0.0, (k - (V.transpose() * Q).squaredNorm()) / k);
}

PrivacyPlan scaled_plan(PrivacyPlan plan, double factor) {
  constexpr double kMostSearch = 1000;  // more would be no noise at all
  for (PrivacyEvent& event : plan.events) {
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu *= factor;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism))
      pure->epsilon = std::min(kMostSearch, pure->epsilon * factor);
  }
  return plan;
}

Result<Sample> Sample::draw(const PublicModel& model, std::size_t entries, int threads, std::uint64_t seed) {
  const auto d = static_cast<std::size_t>(model.spectrum.size());
  const std::size_t rows = std::clamp<std::size_t>(entries / d, std::min<std::size_t>(model.rows, 200), model.rows);
  MemorySource source(draw_rows(model, rows, seed));
  const auto bound = RowBound::of(model.row_bound);
  if (!bound) return bound.error();
  BoundingOptions options{.bound = *bound};
  options.threads = threads;
  auto bounded = BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
  if (!bounded) return bounded.error();
  Sample sample(model, *std::move(bounded), true_components(model, seed));
  // Error of these rows without noise: a few rounds of power iteration from the truth find their own components.
  const PcaOptions pca{.components = model.components};
  const PowerOptions power{.rounds = 12, .filter = RowFilter::kOff};
  PrivacyPlan plan = plan_power(Adjacency::kReplaceOne, pca, power);
  for (PrivacyEvent& event : plan.events) event.mechanism = GaussianEvent{std::numeric_limits<double>::infinity()};
  LocalOracle oracle(sample.rows_, Adjacency::kReplaceOne, reserve_without_ledger(plan), SecureRandom::insecure(seed));
  const auto own = fit_power(oracle, plan, pca, power);
  if (!own) return own.error();
  sample.sampling_error_ = sin_squared(sample.truth_, own->components);
  return sample;
}

Result<Forecast> forecast(const Sample& sample, const PcaProgram& program, const Budget& budget, std::size_t rows,
                          int runs) {
  const auto calibrated = plan(program, budget);
  if (!calibrated) return calibrated.error();
  const auto m = static_cast<double>(sample.rows());
  const double factor = static_cast<double>(rows) / m;
  const PrivacyPlan scaled = scaled_plan(*calibrated, factor);
  Forecast result{program, 0, 0, 0, sums_bytes(program, static_cast<std::size_t>(sample.model().spectrum.size()), 2),
                  {}};
  for (int run = 0; run < runs; ++run) {
    LocalOracle local(sample.bounded(), budget.adjacency, reserve_without_ledger(scaled),
                      SecureRandom::insecure(static_cast<std::uint64_t>(run) + 1));
    RecordingOracle oracle(local, m);
    const auto begin = std::chrono::steady_clock::now();
    const auto done = fit(program, budget, oracle, scaled);
    if (!done) return done.error();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // What m rows err by sampling alone is n / m times what n rows would: that part is scaled.
    const double error = sin_squared(sample.truth(), done->pca.components.leftCols(std::min<Eigen::Index>(
                                                         done->pca.components.cols(), sample.truth().cols())));
    const double sampling = std::min(error, sample.sampling_error());
    result.error += std::min(1.0, error - sampling + sampling / factor) / runs;
    result.lost += lost_variance(sample, done->pca.components) / runs;
    result.seconds += took.count() * factor / runs;
    result.noise = oracle.noise;
  }
  for (AnswerNoise& answer : result.noise)
    if (answer.search) answer.deviation *= factor;
  return result;
}

// U diag(top) U^T + (I - U U^T) diag(rest) (I - U U^T), as `draw_rows` makes it
Matrix Sample::covariance() const {
  const auto k = static_cast<Eigen::Index>(model_.components);
  Vector rest = model_.spectrum;
  if (k < rest.size()) rest.head(k).setConstant(rest[k]);
  const Matrix outside = Matrix::Identity(rest.size(), rest.size()) - truth_ * truth_.transpose();
  return truth_ * model_.spectrum.head(k).asDiagonal() * truth_.transpose() +
         (k < rest.size() ? Matrix(outside * rest.asDiagonal() * outside) : Matrix::Zero(rest.size(), rest.size()));
}

Result<double> forecast_covariance(const Sample& sample, const CovarianceProgram& program, const Budget& budget,
                                   std::size_t rows, int runs) {
  const auto calibrated = plan(program, budget);
  if (!calibrated) return calibrated.error();
  const PrivacyPlan scaled =
      scaled_plan(*calibrated, static_cast<double>(rows) / static_cast<double>(sample.rows()));
  const Matrix truth = sample.covariance();
  double error = 0;
  for (int run = 0; run < runs; ++run) {
    LocalOracle oracle(sample.bounded(), budget.adjacency, reserve_without_ledger(scaled),
                       SecureRandom::insecure(static_cast<std::uint64_t>(run) + 1));
    const auto done = fit(program, budget, oracle, scaled);
    if (!done) return done.error();
    error += (done->dense() - truth).norm() / truth.norm() / runs;
  }
  return error;
}

std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns) {
  constexpr std::size_t kMostColumns = 4096;  // a d x d matrix beyond this is the wrong tool
  std::vector<PcaProgram> programs;
  if (columns <= kMostColumns) programs.push_back({PcaMethod::kGram, options});
  const PcaMethod power = options.sparsity ? PcaMethod::kSparsePower : PcaMethod::kAdaptivePower;
  for (const std::size_t rounds : {2, 3, 4, 6, 8}) programs.push_back({power, options, {.rounds = rounds}});
  return programs;
}

Result<Choice> choose(const Sample& sample, const std::vector<PcaProgram>& programs, const Budget& budget,
                      std::size_t rows) {
  std::vector<Forecast> all;
  for (const PcaProgram& program : programs) {
    auto one = forecast(sample, program, budget, rows);
    if (!one) return one.error();
    all.push_back(*std::move(one));
  }
  const auto best = std::min_element(all.begin(), all.end(),
                                     [](const Forecast& a, const Forecast& b) { return a.lost < b.lost; });
  return Choice{*best, all};
}

}  // namespace eigenveil
