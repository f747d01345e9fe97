#include "eigenveil/estimators/gep/pair.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

std::string pair_matrix_label(char which) { return fmt::format("matrix {}", which); }
std::string pair_product_label(char which, std::size_t round) { return fmt::format("product {} {}", which, round); }

Result<GepResult> solve_once(PairOracle& oracle, const GepOptions& options) {
  const auto A = EIGENVEIL_TRY(oracle.ask(pair_matrix_label('a'), Which::kA));
  const auto B = EIGENVEIL_TRY(oracle.ask(pair_matrix_label('b'), Which::kB));
  const double edge = 2 * A.deviation() * std::sqrt(static_cast<double>(oracle.columns()));
  return solve_pair({A.value(), B.value(), A.deviation(), B.deviation(), edge}, options);
}

Result<GepResult> solve_by_flow(PairOracle& oracle, const GepOptions& options) {
  std::size_t round = 0;
  const double ridge = options.ridge.value_or(0);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    const Matrix Q = orthonormal(V);
    const Matrix R = Q.transpose() * V;
    const auto AQ = EIGENVEIL_TRY(oracle.ask_product(pair_product_label('a', ++round), Which::kA, Q));
    const auto BQ = EIGENVEIL_TRY(oracle.ask_product(pair_product_label('b', round), Which::kB, Q));
    return Products{AQ.value() * R, BQ.value() * R + ridge * V};
  };
  FlowOptions flow{.rounds = options.rounds, .step = options.step, .sparsity = options.sparsity};
  flow.literal = options.as_in_paper;
  const auto flowed = EIGENVEIL_TRY(rayleigh_flow(multiply, random_start(oracle.columns(), options.components), flow));
  return GepResult{flowed.values, flowed.V, ridge, 0, {}};
}

}  // namespace

Status check(const GepOptions& options, std::size_t columns) {
  EIGENVEIL_TRY(check(options));
  if (options.components > columns)
    return bad_input(fmt::format("--components is {} but the matrices have {} columns", options.components, columns));
  if (options.sparsity && *options.sparsity > columns)
    return usage_error(fmt::format("--sparsity is {} but the matrices have {} columns", *options.sparsity, columns));
  return {};
}

PrivacyPlan plan_pair(Adjacency adjacency, const GepOptions& options) {
  if (options.noise == GepNoise::kOnce)
    return PrivacyPlan(adjacency,
                       {{pair_matrix_label('a'), GaussianEvent{1.0}}, {pair_matrix_label('b'), GaussianEvent{1.0}}});
  PrivacyPlan plan(adjacency);
  for (std::size_t round = 1; round <= options.rounds; ++round) {
    plan.events.push_back({pair_product_label('a', round), GaussianEvent{1.0}});
    plan.events.push_back({pair_product_label('b', round), GaussianEvent{1.0}});
  }
  return plan;
}

PrivacyPlan paper_plan_pair(Adjacency adjacency, const GepOptions& options, Epsilon epsilon, Delta delta) {
  PrivacyPlan plan = plan_pair(adjacency, options);
  for (PrivacyEvent& event : plan.events)
    event.mechanism = GaussianEvent{paper_mu(1, 1, options.rounds, epsilon, delta)};
  return plan;
}

Result<GepResult> fit_pair(PairOracle& oracle, const GepOptions& options) {
  EIGENVEIL_TRY(check(options, oracle.columns()));
  auto solved =
      EIGENVEIL_TRY(options.noise == GepNoise::kOnce ? solve_once(oracle, options) : solve_by_flow(oracle, options));
  fix_signs(solved.vectors);
  return solved;
}

}  // namespace eigenveil
