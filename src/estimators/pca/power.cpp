// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/power.hpp"

#include <fmt/format.h>

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

// The search's share of a round's budget: epsilon^2 = share / (1 - share) mu^2.
constexpr double kSearchShare = 0.1;

// A public start: the same for every data set of that shape.
Matrix start(std::size_t d, std::size_t k) {
  std::mt19937_64 random(20140601);
  std::normal_distribution<double> normal;
  return orthonormal(
      Matrix::NullaryExpr(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(k), [&] { return normal(random); }));
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

// s (d / s)^(1 - t / (T - 1)): a start that knows nothing must not decide about columns in its first rounds.
std::size_t kept_rows(std::size_t d, std::size_t s, std::size_t round, const PowerOptions& power) {
  if (!power.narrow || round + 1 == power.rounds) return s;
  const double left = 1 - static_cast<double>(round) / static_cast<double>(power.rounds - 1);
  const double kept = static_cast<double>(s) * std::pow(static_cast<double>(d) / static_cast<double>(s), left);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(kept)), s, d);
}

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

PrivacyPlan plan_power(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power) {
  const double rounds = static_cast<double>(power.rounds);
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, std::sqrt(rounds)));
  for (std::size_t round = 0; round < power.rounds; ++round) {
    if (power.filter != RowFilter::kOff)
      plan.events.push_back({power_search_label(round), PureEvent{std::sqrt(kSearchShare)}});
    const double share = power.filter == RowFilter::kOff ? 1 : 1 - kSearchShare;
    plan.events.push_back({power_product_label(round), GaussianEvent{std::sqrt(share)}});
  }
  return plan;
}

Result<PcaResult> fit_power(Oracle& oracle, const PcaOptions& options, const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  EIGENVEIL_TRY(check(shape, options, power));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.preparation));

  Matrix Q = start(shape.columns, options.components);
  Matrix product;
  double sigma = 0;
  for (std::size_t round = 0; round < power.rounds; ++round) {
    const auto X = EIGENVEIL_TRY(Directions::quantise(Q));
    const bool filtered = power.filter != RowFilter::kOff;
    const auto answer = EIGENVEIL_TRY(filtered ? ask_filtered(oracle, round, X, prepared.rows, power)
                                               : oracle.ask(power_product_label(round), Apply{X}));
    sigma = answer.deviation();
    // Y = (G / n - tau^2 I) X: the error r of the mean adds r r^T to G / n, tau^2 I on average.
    product = answer.value() / prepared.rows - prepared.mean_deviation * prepared.mean_deviation * Q;
    // Q <- qr(truncate(qr(G Q)))
    Q = orthonormal(product);
    if (options.sparsity) Q = truncate_rows(Q, kept_rows(shape.columns, *options.sparsity, round, power));
  }

  // The singular values of the last G Q are its eigenvalue estimates, and order the columns of Q.
  const Eigen::JacobiSVD<Matrix> svd(Q.transpose() * product, Eigen::ComputeThinU | Eigen::ComputeThinV);
  Matrix components = Q * svd.matrixU();
  fix_signs(components);
  const auto d = static_cast<double>(options.sparsity.value_or(shape.columns));
  const double edge = sigma / prepared.rows * (std::sqrt(d) + std::sqrt(static_cast<double>(options.components)));
  // The error of the mean is a direction of its own, of eigenvalue about tau^2 d.
  const double tau = prepared.mean_deviation;
  const double error = tau * tau * std::pow(std::sqrt(d) + 1.2, 2);
  return PcaResult{components,    svd.singularValues(),  prepared.mean,
                   prepared.rows, std::max(edge, error), prepared.mean_deviation};
}

}  // namespace eigenveil
