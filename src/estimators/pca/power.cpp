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

Status check(const RowsShape& shape, const PcaOptions& options, const PowerOptions& power) {
  EIGENVEIL_TRY(check(shape, options));
  if (power.rounds < 1) return usage_error("--rounds must be at least 1");
  if (!(power.grid_ratio >= 1.01 && power.grid_ratio <= 16))
    return usage_error(fmt::format("--grid-ratio must lie between 1.01 and 16, but is {}", power.grid_ratio));
  return {};
}

// What a round learns of G Q, and the noise in it.
struct Product {
  Matrix value;
  double sigma;
};

Result<Product> ask_plain(Oracle& oracle, const PrivacyEvent& event, const Directions& X) {
  const Apply query{X};
  const auto answer = oracle.ask(event.label, query, mu_of(event));
  if (!answer) return answer.error();
  return Product{answer->value(), oracle.noise_of(query, mu_of(event))};
}

Result<Product> ask_filtered(Oracle& oracle, const PrivacyEvent& search, const PrivacyEvent& product,
                             const Directions& X, double rows, const PowerOptions& power) {
  const RowsShape shape = oracle.shape();
  const bool drop = power.filter == RowFilter::kDrop;
  const FilteredApply query{X, threshold_grid(shape.lattice.radius, shape.columns, X.columns(), power.grid_ratio),
                            drop ? FilterMode::kDrop : FilterMode::kShrink};
  const double above = power.rows_above.value_or((drop ? power.share_above / 20 : power.share_above) * rows);
  const auto answer = oracle.ask_filtered(search.label, product.label, query, static_cast<std::int64_t>(above),
                                          epsilon_of(search), mu_of(product));
  if (!answer) return answer.error();
  return Product{*answer->product, oracle.noise_of(query, *answer->chosen, mu_of(product))};
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
    const bool filtered = power.filter != RowFilter::kOff;
    const auto answer = filtered ? ask_filtered(oracle, event[0], event[1], *X, prepared->rows, power)
                                 : ask_plain(oracle, event[0], *X);
    if (!answer) return answer.error();
    event += filtered ? 2 : 1;
    sigma = answer->sigma;
    product = answer->value / prepared->rows;
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
