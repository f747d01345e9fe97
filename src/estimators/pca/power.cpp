#include "eigenveil/estimators/pca/power.hpp"

#include <fmt/format.h>

#include <Eigen/SVD>
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

// Thresholds B^2 / ratio^m, ..., B^2 / ratio, B^2: from far below a typical row's statistic to what no row exceeds.
std::vector<double> threshold_grid(double radius, std::size_t d, double ratio) {
  const double top = radius * radius;
  const int steps = static_cast<int>(std::ceil(std::log(64.0 * static_cast<double>(d)) / std::log(ratio)));
  std::vector<double> grid;
  for (int i = steps; i >= 0; --i) grid.push_back(top * std::pow(ratio, -i));
  return grid;
}

Status check(const RowsShape& shape, const PcaOptions& options, const PowerOptions& power) {
  EIGENVEIL_TRY(check(shape, options));
  if (power.rounds < 1) return usage_error("--rounds must be at least 1");
  if (!(power.grid_ratio >= 1.01 && power.grid_ratio <= 16))
    return usage_error(fmt::format("--grid-ratio must lie between 1.01 and 16, but is {}", power.grid_ratio));
  return {};
}

// The filter of one round: found by the sparse vector technique over the grid.
Result<std::optional<Filter>> find_filter(Oracle& oracle, const PrivacyEvent& event, const Directions& X, double rows,
                                          const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  const std::vector<double> grid = threshold_grid(shape.lattice.radius, shape.columns, power.grid_ratio);
  const bool drop = power.filter == RowFilter::kDrop;
  const auto target = static_cast<std::int64_t>((drop ? power.share_above / 20 : power.share_above) * rows);
  const auto found =
      oracle.first_at_most(event.label, Exceedance{X, grid}, target, std::get<PureEvent>(event.mechanism).epsilon);
  if (!found) return found.error();
  return std::optional(Filter{grid[**found], drop ? FilterMode::kDrop : FilterMode::kShrink});
}

}  // namespace

PrivacyPlan plan_power(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power) {
  const double rounds = static_cast<double>(power.rounds);
  PrivacyPlan plan{plan_preparation(adjacency, options.preparation, std::sqrt(rounds))};
  for (std::size_t round = 1; round <= power.rounds; ++round) {
    if (power.filter != RowFilter::kOff)
      plan.events.push_back({fmt::format("threshold {}", round), PureEvent{std::sqrt(kSearchShare)}});
    const double share = power.filter == RowFilter::kOff ? 1 : 1 - kSearchShare;
    plan.events.push_back({fmt::format("product {}", round), GaussianEvent{std::sqrt(share)}});
  }
  return plan;
}

Result<PcaResult> fit_power(Oracle& oracle, const PrivacyPlan& plan, const PcaOptions& options,
                            const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  EIGENVEIL_TRY(check(shape, options, power));
  const auto prepared = prepare(oracle, plan, options.preparation);
  if (!prepared) return prepared.error();
  auto event =
      plan.events.begin() + static_cast<std::ptrdiff_t>(preparation_events(shape.adjacency, options.preparation));

  Matrix Q = start(shape.columns, options.components);
  Matrix product;
  double sigma = 0;
  for (std::size_t round = 0; round < power.rounds; ++round) {
    const auto X = Directions::quantise(Q);
    if (!X) return X.error();
    Apply apply{*X, {}};
    if (power.filter != RowFilter::kOff) {
      auto filter = find_filter(oracle, *event++, *X, prepared->rows, power);
      if (!filter) return filter.error();
      apply.filter = *filter;
    }
    const auto answer = oracle.ask(event->label, apply, mu_of(*event));
    if (!answer) return answer.error();
    sigma = oracle.noise_of(apply, mu_of(*event));
    ++event;
    product = answer->value() / prepared->rows;
    // Q <- qr(truncate(qr(G Q)))
    Q = orthonormal(product);
    if (options.sparsity) Q = truncate_rows(Q, *options.sparsity);
  }

  // The singular values of the last G Q are its eigenvalue estimates, and order the columns of Q.
  const Eigen::JacobiSVD<Matrix> svd(Q.transpose() * product, Eigen::ComputeThinU | Eigen::ComputeThinV);
  Matrix components = Q * svd.matrixU();
  fix_signs(components);
  const double spread = std::sqrt(static_cast<double>(options.sparsity.value_or(shape.columns)));
  return PcaResult{components, svd.singularValues(), prepared->mean, prepared->rows,
                   sigma / prepared->rows * (spread + std::sqrt(static_cast<double>(options.components)))};
}

}  // namespace eigenveil
