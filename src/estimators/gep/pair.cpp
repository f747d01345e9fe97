#include "eigenveil/estimators/gep/pair.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

Result<GepResult> solve_once(PairOracle& oracle, const PrivacyPlan& plan, const GepOptions& options) {
  const PrivacyEvent& of_a = plan.events[0];
  const PrivacyEvent& of_b = plan.events[1];
  const auto A = oracle.ask(of_a.label, Which::kA, mu_of(of_a));
  if (!A) return A.error();
  const auto B = oracle.ask(of_b.label, Which::kB, mu_of(of_b));
  if (!B) return B.error();
  const double sigma_a = oracle.noise_of_matrix(Which::kA, mu_of(of_a));
  const double sigma_b = oracle.noise_of_matrix(Which::kB, mu_of(of_b));
  return solve_pair(
      {A->value(), B->value(), sigma_a, sigma_b, 2 * sigma_a * std::sqrt(static_cast<double>(oracle.columns()))},
      options);
}

Result<GepResult> solve_by_flow(PairOracle& oracle, const PrivacyPlan& plan, const GepOptions& options) {
  auto event = plan.events.begin();
  const double ridge = options.ridge.value_or(0);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    const Matrix Q = orthonormal(V);
    const Matrix R = Q.transpose() * V;
    const auto AQ = oracle.ask_product(event->label, Which::kA, Q, mu_of(*event));
    if (!AQ) return AQ.error();
    ++event;
    const auto BQ = oracle.ask_product(event->label, Which::kB, Q, mu_of(*event));
    if (!BQ) return BQ.error();
    ++event;
    return Products{AQ->value() * R, BQ->value() * R + ridge * V};
  };
  FlowOptions flow{.rounds = options.rounds, .step = options.step, .sparsity = options.sparsity};
  flow.literal = options.as_in_paper;
  const auto flowed = rayleigh_flow(multiply, random_start(oracle.columns(), options.components), flow);
  if (!flowed) return flowed.error();
  return GepResult{flowed->values, flowed->V, ridge, 0, {}};
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

PrivacyPlan plan_pair(const GepOptions& options) {
  if (options.noise == GepNoise::kOnce) return {{{"matrix a", GaussianEvent{1.0}}, {"matrix b", GaussianEvent{1.0}}}};
  PrivacyPlan plan;
  for (std::size_t round = 1; round <= options.rounds; ++round) {
    plan.events.push_back({fmt::format("product a {}", round), GaussianEvent{1.0}});
    plan.events.push_back({fmt::format("product b {}", round), GaussianEvent{1.0}});
  }
  return plan;
}

PrivacyPlan paper_plan_pair(const GepOptions& options, Epsilon epsilon, Delta delta) {
  PrivacyPlan plan = plan_pair(options);
  for (PrivacyEvent& event : plan.events)
    event.mechanism = GaussianEvent{paper_mu(1, 1, options.rounds, epsilon, delta)};
  return plan;
}

Result<GepResult> fit_pair(PairOracle& oracle, const PrivacyPlan& plan, const GepOptions& options) {
  EIGENVEIL_TRY(check(options, oracle.columns()));
  auto solved =
      options.noise == GepNoise::kOnce ? solve_once(oracle, plan, options) : solve_by_flow(oracle, plan, options);
  if (!solved) return solved.error();
  fix_signs(solved->vectors);
  return solved;
}

}  // namespace eigenveil
