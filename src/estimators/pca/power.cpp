// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/power.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "filtered_run.hpp"
#include "remember.hpp"
#include "sampled_moments.hpp"

namespace eigenveil {
namespace {

// The search's share of a round's budget: epsilon^2 = share / (1 - share) mu^2.
constexpr double kSearchShare = 0.1;
// Of the method that remembers: an error of some hundred rows in half of them does not count.
constexpr double kRememberedSearchShare = 0.05;
// Its shares of mu^2 grow: early rounds only have to find the subspace, and nothing that they found is lost. Of many
// rounds none is left without.
constexpr double kGrowth = 1.3;
constexpr double kMostGrowth = 32;

// A public start: the same for every data set of that shape.
Matrix random_start(std::size_t d, std::size_t k) {
  std::mt19937_64 random(20140601);
  return orthonormal(public_normals(random, d, k));
}

// The same, but for the directions that were given.
Matrix beginning(const Matrix& start, std::size_t d, std::size_t width) {
  Matrix Q = random_start(d, width);
  if (start.cols() == 0) return Q;
  const Eigen::Index m = std::min(Q.cols(), start.cols());
  Q.leftCols(m) = start.leftCols(m);
  return orthonormal(Q);
}

Status check(const RowsShape& shape, const PcaOptions& options, const PowerOptions& power) {
  EIGENVEIL_TRY(check(shape, options));
  if (power.rounds < 1) return usage_error("`rounds` must be at least 1");
  if (!(power.grid_ratio >= 1.01 && power.grid_ratio <= 16))
    return usage_error(fmt::format("`grid_ratio` must lie between 1.01 and 16, but is {}", power.grid_ratio));
  return {};
}

std::string power_search_label(std::size_t round) { return fmt::format("threshold {}", round + 1); }
std::string power_product_label(std::size_t round) { return fmt::format("product {}", round + 1); }

Result<Answer> ask_filtered(Oracle& oracle, std::size_t round, const Directions& X, double rows,
                            const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  const bool drop = power.filter == RowFilter::kDrop;
  const FilteredApply query{X, threshold_grid(shape.lattice.radius, shape.columns, X.columns(), power.grid_ratio),
                            drop ? FilterMode::kDrop : FilterMode::kShrink};
  const double above = power.rows_above.value_or((drop ? power.share_above / 20 : power.share_above) * rows);
  auto answer = EIGENVEIL_TRY(oracle.ask_filtered(power_search_label(round), power_product_label(round), query,
                                                  static_cast<std::int64_t>(above)));
  return std::move(answer.product);
}

// Adaptive power iteration as its paper has it uses the last product alone.
bool remembers(const PcaOptions& options, const PowerOptions& power) {
  return power.filter != RowFilter::kOff && power.narrow && !power.rows_above && !options.sparsity;
}

// Columns of Q: two more than are asked for, where that is free. Their noise is the same, and the last component's
// neighbours are seen, without which nobody could say whether it stands alone.
std::size_t iterated(std::size_t d, const PcaOptions& options, const PowerOptions& power) {
  const bool free = power.filter == RowFilter::kOff && power.narrow && !options.sparsity;
  return free ? std::min(d, options.components + 2) : options.components;
}

// A round's share of the mu^2 of all rounds.
double round_share(std::size_t round, std::size_t rounds) {
  const double growth = std::min(kGrowth, std::pow(kMostGrowth, 1 / static_cast<double>(rounds)));
  double total = 0;
  for (std::size_t t = 0; t < rounds; ++t) total += std::pow(growth, static_cast<double>(t));
  return std::pow(growth, static_cast<double>(round)) / total;
}

// Fine within a factor of 16 of the last round's threshold, coarse elsewhere. It begins where the coarse one does and
// ends with what no row exceeds.
std::vector<double> grid_around(double theta, double radius, const std::vector<double>& coarse, double ratio) {
  constexpr double kAround = 16;
  const double fine = std::cbrt(ratio);
  const double top = radius * radius;
  std::vector<double> grid;
  for (std::size_t i = 0; i < coarse.size(); i += 3)
    if (coarse[i] < theta / kAround) grid.push_back(coarse[i]);
  for (double g = std::max(theta / kAround, coarse.front()); g <= theta * kAround && g < top; g *= fine)
    grid.push_back(g);
  for (std::size_t i = 0; i < coarse.size(); i += 3)
    if (coarse[i] > theta * kAround) grid.push_back(coarse[i]);
  if (grid.empty() || grid.back() < top) grid.push_back(top);
  return grid;
}

// s (d / s)^(1 - t / (T - 1)): a start that knows nothing must not decide about columns in its first rounds.
std::size_t kept_rows(std::size_t d, std::size_t s, std::size_t round, const PowerOptions& power) {
  if (!power.narrow || round + 1 == power.rounds) return s;
  const double left = 1 - static_cast<double>(round) / static_cast<double>(power.rounds - 1);
  const double kept = static_cast<double>(s) * std::pow(static_cast<double>(d) / static_cast<double>(s), left);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(kept)), s, d);
}

Matrix next(const Matrix& product, std::size_t round, const PcaOptions& options, const PowerOptions& power) {
  // Q <- qr(truncate(qr(G Q)))
  Matrix Q = orthonormal(product);
  if (!options.sparsity) return Q;
  return truncate_rows(Q, kept_rows(Q.rows(), *options.sparsity, round, power));
}

// The singular values of the last G Q are its eigenvalue estimates, and order the columns of Q.
Found found_in(const Matrix& Q, const Matrix& product) {
  const Svd svd = thin_svd(Q.transpose() * product);
  return {svd.values, Q * svd.U};
}

/// What the iteration met, to run it again on the model that it released:
///   Sigma = b I + T diag(excess) T^T, from n rows, about a mean whose error is r
struct PowerRun {
  PcaOptions options;
  PowerOptions power;
  Preparation prepared;
  Matrix start = {};               // that was given
  std::vector<double> noise = {};  // of each round's product, per row
  Matrix first = {};               // G Q_0
  Found found = {};

  /// Q_0^T G Q_0 has the level of all directions, less what the components account for. Where they account for nearly
  /// all of it, as even directions do that the iteration hardly turned, the last of them tells the level.
  double level() const {
    const Matrix Q = beginning(start, first.rows(), first.cols());
    const Matrix seen = (found.directions.transpose() * Q).cwiseAbs2();  // components x columns of Q
    constexpr double kLast = 0.5;                                        // how many columns of the start it counts as
    const double left = static_cast<double>(Q.cols()) - seen.sum();
    const double trace = (Q.transpose() * first).trace();
    const double last = found.values[found.values.size() - 1];
    return std::max(0.0,
                    (trace - seen.rowwise().sum().dot(found.values) + kLast * last) / (std::max(left, 0.0) + kLast));
  }

  /// Values are those above the level.
  Found draw(const Vector& excess, const Matrix& truth, double b, PublicStream& stream) const {
    const Eigen::Index d = truth.rows(), K = truth.cols() + 1;
    Matrix T(d, K);
    T << truth, stream.normals(d, 1);
    T.col(K - 1) -= truth * (truth.transpose() * T.col(K - 1));
    T.col(K - 1).normalize();
    Vector x(K);
    x << excess, unseen_neighbour(excess);
    const double tau = prepared.mean_deviation;
    const SampledMoments G(T, x.array() + b, b, prepared.rows, tau, stream);
    Matrix Q = beginning(start, d, truth.cols()), product;
    PowerRun again{.options = options, .power = power, .prepared = prepared, .start = start};
    for (std::size_t round = 0; round < noise.size(); ++round) {
      product = G.times(Q) - tau * tau * Q + noise[round] * stream.normals(d, Q.cols());
      if (round == 0) again.first = product;
      Q = next(product, round, options, power);
    }
    // The level is found again too: its error is one of theirs.
    again.found = found_in(Q, product);
    again.found.values.array() -= again.level();
    return std::move(again.found);
  }

  Result<Verdict> judge() const {
    const double b = level();
    constexpr double kManyNumbers = 100000;  // of a product, over all rounds
    const double numbers = static_cast<double>(first.size()) * static_cast<double>(noise.size());
    Rerun rerun{.released = {found.values.array() - b, found.directions},
                .components = options.components,
                .root = {},
                .draw = {}};
    rerun.effort = std::min(1.0, kManyNumbers / numbers);
    rerun.pass = 3;
    rerun.draw = [&](const Vector& excess, const Matrix& truth, PublicStream& stream) -> Result<Found> {
      return draw(excess, truth, b, stream);
    };
    auto verdict = EIGENVEIL_TRY(judge_rerun(rerun));
    for (Vector* values : {&verdict.estimate, &verdict.low, &verdict.high}) values->array() += b;
    for (Eigen::Index i = verdict.found; i < verdict.low.size(); ++i) verdict.low[i] = 0;
    verdict.line += b;
    return verdict;
  }
};

}  // namespace

// Thresholds B^2 / ratio^m, ..., B^2 / ratio, B^2: from far below the statistic of a typical row, which is about
// ||u||^2 sqrt(k / d) at the start, to what no row exceeds.
std::vector<double> threshold_grid(double radius, std::size_t d, std::size_t k, double ratio) {
  constexpr double kBelow = 4096;  // rows may be 64 times shorter than their bound
  const double top = radius * radius;
  const double range = kBelow * std::sqrt(static_cast<double>(d) / static_cast<double>(k));
  const int steps = static_cast<int>(std::ceil(std::log(range) / std::log(ratio)));
  std::vector<double> grid;
  for (int i = steps; i >= 0; --i) grid.push_back(top * std::pow(ratio, -i));
  return grid;
}

Result<PcaResult> fit_rounds(Oracle& oracle, const PcaOptions& options, const PowerOptions& power,
                             const Preparation& prepared, const PowerStart& start) {
  const RowsShape shape = oracle.shape();
  const double n = prepared.rows;
  const bool drop = power.filter == RowFilter::kDrop;
  const auto above = static_cast<std::int64_t>((drop ? power.share_above / 20 : power.share_above) * n);
  const auto widths = power_widths(options, shape.columns, power);
  RememberedProducts memory(start.directions, widths, options.components, start.level);
  FilteredRun run{.columns = shape.columns,
                  .components = options.components,
                  .rows = n,
                  .tau = prepared.mean_deviation,
                  .radius = prepared.bound_found ? std::optional(shape.lattice.radius) : std::nullopt,
                  .above = static_cast<double>(above) / n,
                  .drop = drop,
                  .widths = widths,
                  .level_unfiltered = start.level.has_value()};
  const double tau2 = prepared.mean_deviation * prepared.mean_deviation;
  double theta = 0;  // in units of U diag(w)
  for (std::size_t round = 0; round < power.rounds; ++round) {
    const auto X = EIGENVEIL_TRY(Directions::quantise(memory.directions()));
    const double scale = memory.scale();
    const auto coarse = threshold_grid(shape.lattice.radius, shape.columns, X.columns(), power.grid_ratio);
    const FilteredApply query{
        X, round == 0 ? coarse : grid_around(theta / scale, shape.lattice.radius, coarse, power.grid_ratio),
        drop ? FilterMode::kDrop : FilterMode::kShrink};
    const auto answer =
        EIGENVEIL_TRY(oracle.ask_filtered(power_search_label(round), power_product_label(round), query, above));
    theta = query.grid[*answer.chosen] * scale;
    run.sigmas.push_back(answer.product.deviation() / n * scale);
    const Matrix A = X.scaled() * (scale * std::ldexp(1.0, -Directions::kBits));
    // Y = (G / n - tau^2 I) A: the error r of the mean adds r r^T to G / n, tau^2 I on average.
    const Matrix Y = answer.product.value() * (scale / n) - tau2 * A;
    memory.learn(A, Y, run.sigmas.back());
  }
  run.values = memory.values();
  run.vectors = memory.vectors();
  fix_signs(run.vectors);
  run.level = start.level ? *start.level : level_beside(memory, start.directions);
  // Where nobody asks for a verdict, which simulates it: the noise of the last block, on the level of all directions.
  const double d = static_cast<double>(shape.columns);
  const double noise = run.sigmas.back() * (std::sqrt(d) + std::sqrt(static_cast<double>(options.components)));
  const double error = std::pow(prepared.mean_deviation * (std::sqrt(d) + 1.2), 2);
  PcaResult result{run.vectors,
                   run.values.cwiseMax(0.0),
                   prepared.mean,
                   n,
                   memory.level() + std::max(noise, error),
                   prepared.mean_deviation};
  result.judge = [run = std::move(run)] { return run.judge(); };
  return result;
}

std::vector<std::size_t> power_widths(const PcaOptions& options, std::size_t columns, const PowerOptions& power) {
  return block_widths(options.components, columns, power.rounds);
}

std::vector<PrivacyEvent> plan_rounds(const PcaOptions& options, const PowerOptions& power) {
  std::vector<PrivacyEvent> events;
  const bool grows = remembers(options, power);
  const double search = power.filter == RowFilter::kOff ? 0 : grows ? kRememberedSearchShare : kSearchShare;
  for (std::size_t round = 0; round < power.rounds; ++round) {
    const double share = grows ? round_share(round, power.rounds) : 1 / static_cast<double>(power.rounds);
    if (search > 0) events.push_back({power_search_label(round), PureEvent{std::sqrt(search * share)}});
    events.push_back({power_product_label(round), GaussianEvent{std::sqrt((1 - search) * share)}});
  }
  return events;
}

PrivacyPlan plan_power(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power) {
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, 1.0));
  for (PrivacyEvent& event : plan_rounds(options, power)) plan.events.push_back(std::move(event));
  return plan;
}

Result<PcaResult> fit_power(Oracle& oracle, const PcaOptions& options, const PowerOptions& power, const Matrix& start) {
  const RowsShape shape = oracle.shape();
  EIGENVEIL_TRY(check(shape, options, power));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.preparation));
  if (remembers(options, power)) {
    const auto widths = power_widths(options, shape.columns, power);
    return fit_rounds(oracle, options, power, prepared, {beginning(start, shape.columns, widths[0])});
  }

  const std::size_t width = iterated(shape.columns, options, power);
  Matrix Q = beginning(start, shape.columns, width);
  Matrix product;
  PowerRun run{.options = options, .power = power, .prepared = prepared, .start = start};
  for (std::size_t round = 0; round < power.rounds; ++round) {
    const auto X = EIGENVEIL_TRY(Directions::quantise(Q));
    const bool filtered = power.filter != RowFilter::kOff;
    const auto answer = EIGENVEIL_TRY(filtered ? ask_filtered(oracle, round, X, prepared.rows, power)
                                               : oracle.ask(power_product_label(round), Apply{X}));
    run.noise.push_back(answer.deviation() / prepared.rows);
    // Y = (G / n - tau^2 I) X: the error r of the mean adds r r^T to G / n, tau^2 I on average.
    product = answer.value() / prepared.rows - prepared.mean_deviation * prepared.mean_deviation * Q;
    if (round == 0) run.first = product;
    Q = next(product, round, options, power);
  }

  run.found = found_in(Q, product);
  fix_signs(run.found.directions);
  // Noise sits on the level of all directions. The error of the mean is a direction of its own, of eigenvalue about
  // tau^2 d.
  const auto d = static_cast<double>(options.sparsity.value_or(shape.columns));
  const double noise = run.noise.back() * (std::sqrt(d) + std::sqrt(static_cast<double>(width)));
  const double error = std::pow(prepared.mean_deviation * (std::sqrt(d) + 1.2), 2);
  const double edge = run.level() + std::max(noise, error);
  const Eigen::Index k = options.components;
  PcaResult result{run.found.directions.leftCols(k), run.found.values.head(k), prepared.mean, prepared.rows, edge,
                   prepared.mean_deviation};
  // A filter takes more from some directions than from others, which this rerun does not show.
  if (power.filter == RowFilter::kOff) result.judge = [run = std::move(run)] { return run.judge(); };
  return result;
}

}  // namespace eigenveil
