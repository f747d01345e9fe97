// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/spiked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/model_based.hpp"
#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {
namespace {

// Shares of the total mu^2. The subspace is the hard part.
constexpr double kRadiusShare = 0.02;
constexpr double kBlockShare = 0.10;
constexpr double kTraceShare = 0.03;
constexpr double kPilotShare = 0.10;
constexpr const char* kRadiusLabel = "radius";
constexpr const char* kBlockLabel = "eigenvalues";
constexpr const char* kTraceLabel = "trace";
constexpr const char* kPilotLabel = "pilot";
constexpr const char* kProjectorLabel = "projector";

bool needs_pilot(const SpikedOptions& options) { return !options.noise_variance || !options.spike; }

double squared_weight(const PrivacyPlan& plan) {
  double sum = 0;
  for (const PrivacyEvent& event : plan.events) {
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) sum += gaussian->mu * gaussian->mu;
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) sum += pure->epsilon * pure->epsilon;
  }
  return sum;
}

PrivacyPlan plan_strict(Adjacency adjacency, const PreparationOptions& preparation, const SpikedOptions& options) {
  const PcaOptions pca{options.rank.value_or(1), preparation, {}};
  PrivacyPlan plan =
      options.subspace == Subspace::kGram ? plan_gram(adjacency, pca) : plan_power(adjacency, pca, options.power);
  const double trace = options.noise_variance ? 0 : kTraceShare;
  const double total = squared_weight(plan) / (1 - kRadiusShare - kBlockShare - trace);
  plan.events.push_back({kRadiusLabel, PureEvent{std::sqrt(kRadiusShare * total)}});
  plan.events.push_back({kBlockLabel, GaussianEvent{std::sqrt(kBlockShare * total)}});
  if (trace > 0) plan.events.push_back({kTraceLabel, GaussianEvent{std::sqrt(trace * total)}});
  return plan;
}

PrivacyPlan plan_model(Adjacency adjacency, const PreparationOptions& preparation, const SpikedOptions& options) {
  const double pilot = needs_pilot(options) ? kPilotShare : 0;
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, preparation, 1.0), true);
  if (pilot > 0) plan.events.push_back({kPilotLabel, GaussianEvent{std::sqrt(pilot)}});
  plan.events.push_back({kProjectorLabel, GaussianEvent{std::sqrt((1 - pilot) * (1 - kBlockShare))}});
  plan.events.push_back({kBlockLabel, GaussianEvent{std::sqrt((1 - pilot) * kBlockShare)}});
  return plan;
}

// U, as the chosen method finds it.
Result<PcaResult> find_subspace(Oracle& oracle, const PreparationOptions& preparation, const SpikedOptions& options) {
  if (options.subspace == Subspace::kAdaptivePower)
    return fit_power(oracle, {*options.rank, preparation, {}}, options.power);
  if (options.rank) return fit_gram(oracle, {*options.rank, preparation, {}});
  auto released = EIGENVEIL_TRY(release_covariance(oracle, preparation));
  const std::size_t d = oracle.shape().columns;
  const auto all = EIGENVEIL_TRY(top_eigenpairs(released.covariance, d));
  const std::size_t r =
      std::clamp<std::size_t>(rank_above_noise(all.values, released.edge(), released.prepared.rows), 1, d - 1);
  const Eigen::Index top = r;
  PcaResult result{all.vectors.leftCols(top),
                   all.values.head(top),
                   released.prepared.mean,
                   released.prepared.rows,
                   noise_line(moments_of(released), all.values),
                   released.prepared.mean_deviation};
  result.judge = judge_of(std::move(released), r);
  return result;
}

// sum t t^T / n over t = U^T u, shortened to a radius that few rows exceed
Result<Matrix> projected_block(Oracle& oracle, const Directions& U, double rows) {
  const double B = oracle.shape().lattice.radius;
  std::vector<double> grid;
  for (int i = 60; i >= 0; --i) grid.push_back(B * std::exp2(-i / 4.0));
  // The search itself errs by some 2 / epsilon rows; beyond that a thousandth of the rows may be shortened.
  const auto epsilon = EIGENVEIL_TRY(oracle.planned_epsilon(kRadiusLabel));
  const auto above = static_cast<std::int64_t>(8 / epsilon + 0.001 * rows);
  const auto found = EIGENVEIL_TRY(oracle.first_at_most(kRadiusLabel, NormExceedance{grid, U}, above));
  const auto gram = EIGENVEIL_TRY(oracle.ask(kBlockLabel, ProjectedGram{U, grid[*found]}));
  return Matrix(gram.value() / rows);
}

// U <- U W and the eigenvalues of the block W diag(l) W^T; sigma^2 from the trace, or as given
Result<SpikedResult> assemble(PcaResult pca, const Matrix& block, std::optional<double> sigma2,
                              std::optional<double> trace) {
  const auto pairs = EIGENVEIL_TRY(top_eigenpairs(block, block.cols()));
  const auto p = static_cast<double>(pca.components.rows());
  const auto r = static_cast<double>(pca.components.cols());
  const double variance = sigma2 ? *sigma2 : std::max(0.0, (*trace - pairs.values.sum()) / (p - r));
  pca.components = pca.components * pairs.vectors;
  fix_signs(pca.components);
  pca.eigenvalues = pairs.values.cwiseMax(variance);
  return SpikedResult{std::move(pca), variance};
}

Result<SpikedResult> fit_strict(Oracle& oracle, const PreparationOptions& preparation, const SpikedOptions& options) {
  auto subspace = EIGENVEIL_TRY(find_subspace(oracle, preparation, options));
  const auto U = EIGENVEIL_TRY(Directions::quantise(subspace.components));
  const double rows = subspace.rows;
  // The mean's error adds tau^2 I to averages of u u^T, and so to the block and the trace.
  const double shift = subspace.mean_deviation * subspace.mean_deviation;
  Matrix block = EIGENVEIL_TRY(projected_block(oracle, U, rows));
  block.diagonal().array() -= shift;
  std::optional<double> trace;
  if (!options.noise_variance) {
    const auto squares = EIGENVEIL_TRY(oracle.ask(kTraceLabel, SquaredNorms{}));
    trace = squares.value()(0, 0) / rows - shift * static_cast<double>(oracle.shape().columns);
  }
  return assemble(std::move(subspace), block, options.noise_variance, trace);
}

// The model that the rows are assumed to be drawn from, as a noisy look at their covariance shows it.
Result<SpikedModel> pilot_model(Oracle& oracle, std::size_t r, double rows) {
  const auto gram = EIGENVEIL_TRY(oracle.ask(kPilotLabel, Gram{}));
  const Matrix covariance = gram.value() / rows;
  const auto top = EIGENVEIL_TRY(top_eigenpairs(covariance, r));
  const auto d = static_cast<double>(covariance.cols());
  const double sigma2 = std::max(1e-12, (covariance.trace() - top.values.sum()) / (d - static_cast<double>(r)));
  // A spike that the pilot cannot tell from its own noise is taken to be as small as that noise.
  const double edge = 2 * gram.deviation() / rows * std::sqrt(d);
  const Vector spikes = (top.values.array() - sigma2).max(std::max(edge, 1e-12));
  return SpikedModel{static_cast<std::size_t>(rows), static_cast<std::size_t>(covariance.cols()), spikes, sigma2};
}

Result<SpikedModel> assumed_model(Oracle& oracle, double rows, const SpikedOptions& options) {
  const Eigen::Index r = *options.rank;
  SpikedModel model{static_cast<std::size_t>(rows), oracle.shape().columns,
                    Vector::Constant(r, options.spike.value_or(0)), options.noise_variance.value_or(0)};
  if (!needs_pilot(options)) return model;
  const auto pilot = EIGENVEIL_TRY(pilot_model(oracle, *options.rank, rows));
  if (!options.spike) model.spikes = pilot.spikes;
  if (!options.noise_variance) model.noise_variance = pilot.noise_variance;
  return model;
}

// What rows on a lattice add to the distances of the model's own: a thousandth and the truncated entries of the
// projector; truncated rows and projections, 2 |t| sqrt(k) and 2 |u| sqrt(d) steps for each of two rows, |t| <= 2 B.
RowSensitivity on_lattice(const RowSensitivity& bound, const RowsShape& shape, std::size_t r) {
  const auto p = static_cast<double>(shape.columns);
  const double steps = 8 * std::sqrt(static_cast<double>(r)) + 4 * std::sqrt(p);
  return {bound.projector * 1.001 + p * 0x1p-40, bound.sum + steps * shape.lattice.radius * shape.lattice.unit()};
}

Result<SpikedResult> fit_model(Oracle& oracle, const PreparationOptions& preparation, const SpikedOptions& options) {
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation));
  const double n = prepared.rows;
  const std::size_t r = *options.rank;
  const auto model = EIGENVEIL_TRY(assumed_model(oracle, n, options));
  auto assumed = EIGENVEIL_TRY(assumed_sensitivity(model));
  assumed.bound = on_lattice(assumed.bound, oracle.shape(), r);

  const auto projector = EIGENVEIL_TRY(oracle.ask_model(kProjectorLabel, SpikedProjector(r, assumed.bound.projector)));
  const auto top = EIGENVEIL_TRY(top_eigenpairs(projector.value(), r));
  const auto U = EIGENVEIL_TRY(Directions::quantise(top.vectors));
  // ||U^T D U||_F <= ||U||^2 ||D||_F
  const double moved = assumed.bound.sum * U.norm_factor() * U.norm_factor();
  const auto block = EIGENVEIL_TRY(oracle.ask_model(kBlockLabel, SpikedBlock(U, moved)));
  // What the noise alone adds to an eigenvalue of the r x r block
  const double edge = 2 * block.deviation() / n * std::sqrt(static_cast<double>(r));
  auto result = assemble({top.vectors, top.values, prepared.mean, n, edge, prepared.mean_deviation}, block.value() / n,
                         model.noise_variance, {});
  if (result) result->assumed = assumed;
  return result;
}

}  // namespace

std::size_t rank_above_noise(const Vector& eigenvalues, double noise_edge, double rows) {
  const auto d = static_cast<double>(eigenvalues.size());
  // Bulk of a sample covariance sigma^2 I (Marchenko, Pastur) plus that of the noise matrix (Wigner), and 5% more.
  std::size_t rank = 0;
  for (int pass = 0; pass < 50; ++pass) {
    const Eigen::Index top = rank;
    const double left = d - static_cast<double>(rank);
    const double sigma2 = std::max(0.0, eigenvalues.tail(eigenvalues.size() - top).sum() / std::max(1.0, left));
    const double edge = sigma2 * std::pow(1 + std::sqrt(d / rows), 2) + noise_edge;
    const std::size_t above = (eigenvalues.array() > 1.05 * edge).count();
    if (above <= rank) break;  // sigma^2 falls as spikes are taken out, so the rank only grows
    rank = above;
  }
  return rank;
}

double spiked_rate(double n, double p, double r, double spike, double noise_variance, Epsilon epsilon, Delta delta) {
  const double logs = r + std::log(n);
  const double cost = std::sqrt(std::log(2.5 / delta.value())) / (n * epsilon.value());
  return spike * (std::sqrt(r / n) + std::sqrt(r) * logs * cost) +
         std::sqrt(noise_variance * (spike + noise_variance)) * (std::sqrt(p / n) + p * std::sqrt(logs) * cost);
}

Status check(std::size_t columns, Adjacency adjacency, const SpikedOptions& options) {
  if (columns < 2) return bad_input("the spiked model needs at least two columns");
  if (options.rank && (*options.rank < 1 || *options.rank >= columns))
    return usage_error(fmt::format("`rank` must lie between 1 and {}, one less than the columns, but is {}",
                                   columns - 1, *options.rank));
  const auto positive = [](const std::optional<double>& x) { return !x || (*x > 0 && std::isfinite(*x)); };
  if (!positive(options.noise_variance))
    return usage_error(fmt::format("`noise_variance` must be positive, but is {}", *options.noise_variance));
  if (!positive(options.spike)) return usage_error(fmt::format("`spike` must be positive, but is {}", *options.spike));
  const bool model = options.guarantee == Guarantee::kModel;
  if (!options.rank && (model || options.subspace == Subspace::kAdaptivePower))
    return usage_error(model ? "`guarantee` model needs `rank` R: its noise depends on it"
                             : "`rank` auto needs the whole covariance: it does not go with adaptive-power");
  if (model && adjacency != Adjacency::kReplaceOne)
    return usage_error("`guarantee` model is stated for replace-one neighbours: use `adjacency` replace-one");
  return {};
}

PrivacyPlan plan_spiked(Adjacency adjacency, const PreparationOptions& preparation, const SpikedOptions& options) {
  return options.guarantee == Guarantee::kModel ? plan_model(adjacency, preparation, options)
                                                : plan_strict(adjacency, preparation, options);
}

Result<SpikedResult> fit_spiked(Oracle& oracle, const PreparationOptions& preparation, const SpikedOptions& options) {
  const RowsShape shape = oracle.shape();
  EIGENVEIL_TRY(check(shape.columns, shape.adjacency, options));
  return options.guarantee == Guarantee::kModel ? fit_model(oracle, preparation, options)
                                                : fit_strict(oracle, preparation, options);
}

}  // namespace eigenveil
