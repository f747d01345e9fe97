// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/matrices.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {
namespace {

std::string matrix_label(char which) { return fmt::format("matrix {}", which); }
std::string matrix_product_label(char which, std::size_t round) { return fmt::format("product {} {}", which, round); }

/// A = R U diag(l) U^T R and B = R R with fresh noise, solved again.
Result<Verdict> judge_matrices(const NoisyMatrices& matrices, GepOptions options) {
  const std::size_t judged = options.components;
  options.components = std::min(judged + 2, options.sparsity.value_or(matrices.A.rows()));
  options.components = std::min<std::size_t>(options.components, matrices.A.rows());
  const auto solved = EIGENVEIL_TRY(solve_matrices(matrices, options));
  constexpr double kNoSampling = 1e15;  // the matrices are what they are: nobody drew them
  Rerun rerun{.released = {solved.values, solved.vectors}, .components = judged, .root = {}, .draw = {}};
  rerun.root = EIGENVEIL_TRY(population_root({matrices.B, matrices.sigma_b, kNoSampling, 0}));
  rerun.draw = [&](const Vector& values, const Matrix& truth, PublicStream& stream) -> Result<Found> {
    const Matrix BT = rerun.root * (rerun.root * truth);
    NoisyMatrices drawn = matrices;
    drawn.A = BT * values.asDiagonal() * BT.transpose();
    drawn.B = rerun.root * rerun.root;
    add_noise(drawn.A, matrices.sigma_a, stream);
    add_noise(drawn.B, matrices.sigma_b, stream);
    const auto again = EIGENVEIL_TRY(solve_matrices(drawn, options));
    return Found{again.values, again.vectors};
  };
  return judge_rerun(rerun);
}

Result<GepResult> solve_once(Oracle& oracle, const GepOptions& options) {
  const auto A = EIGENVEIL_TRY(oracle.ask(matrix_label('a'), Gram{}));
  const auto B = EIGENVEIL_TRY(oracle.ask(matrix_label('b'), Gram{}));
  const double edge = 2 * A.deviation() * std::sqrt(static_cast<double>(oracle.shape().columns));
  const NoisyMatrices matrices{A.value(), B.value(), A.deviation(), B.deviation(), edge};
  auto solved = EIGENVEIL_TRY(solve_matrices(matrices, options));
  if (matrices.A.rows() <= kMostRerun) solved.judge = [=] { return judge_matrices(matrices, options); };
  return solved;
}

Result<GepResult> solve_by_flow(Oracle& oracle, const GepOptions& options) {
  std::size_t round = 0;
  const double ridge = options.ridge.value_or(0);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    const Matrix Q = orthonormal(V);
    const Matrix R = Q.transpose() * V;
    const auto X = EIGENVEIL_TRY(Directions::quantise(Q));
    const auto AQ = EIGENVEIL_TRY(oracle.ask(matrix_product_label('a', ++round), Apply{X}));
    const auto BQ = EIGENVEIL_TRY(oracle.ask(matrix_product_label('b', round), Apply{X}));
    return Products{AQ.value() * R, BQ.value() * R + ridge * V};
  };
  FlowOptions flow{.rounds = options.rounds, .step = options.step, .sparsity = options.sparsity};
  flow.literal = options.literal;
  const auto flowed =
      EIGENVEIL_TRY(rayleigh_flow(multiply, random_start(oracle.shape().columns, options.components), flow));
  return GepResult{flowed.values, flowed.V, ridge, 0, {}};
}

}  // namespace

Status check(const GepOptions& options, std::size_t columns) {
  EIGENVEIL_TRY(check(options));
  if (options.components > columns)
    return bad_input(fmt::format("`components` is {} but the matrices have {} columns", options.components, columns));
  if (options.sparsity && *options.sparsity > columns)
    return usage_error(fmt::format("`sparsity` is {} but the matrices have {} columns", *options.sparsity, columns));
  return {};
}

PrivacyPlan plan_matrices(Adjacency adjacency, const GepOptions& options) {
  if (options.noise == GepNoise::kOnce)
    return PrivacyPlan(adjacency, {{matrix_label('a'), GaussianEvent{1.0}}, {matrix_label('b'), GaussianEvent{1.0}}});
  PrivacyPlan plan(adjacency);
  for (std::size_t round = 1; round <= options.rounds; ++round) {
    plan.events.push_back({matrix_product_label('a', round), GaussianEvent{1.0}});
    plan.events.push_back({matrix_product_label('b', round), GaussianEvent{1.0}});
  }
  return plan;
}

Result<GepResult> fit_matrices(Oracle& oracle, const GepOptions& options) {
  EIGENVEIL_TRY(check(options, oracle.shape().columns));
  auto solved =
      EIGENVEIL_TRY(options.noise == GepNoise::kOnce ? solve_once(oracle, options) : solve_by_flow(oracle, options));
  fix_signs(solved.vectors);
  return solved;
}

namespace {

class GepEstimator final : public Estimator {
 public:
  GepEstimator(GepOptions options, double sensitivity_a, double sensitivity_b)
      : options_(std::move(options)), sensitivity_a_(sensitivity_a), sensitivity_b_(sensitivity_b) {}

  std::string_view name() const override { return "gep"; }
  std::string method() const override { return std::string(eigenveil::name(options_.noise)); }
  std::string purpose() const override {
    return fmt::format("gep, noise {}, components {}", method(), options_.components);
  }
  nlohmann::json options() const override {
    nlohmann::json json = options_json(options_);
    json["sensitivity_a"] = sensitivity_a_;
    json["sensitivity_b"] = sensitivity_b_;
    return json;
  }
  Status check(const RowsShape& shape, const Budget& budget) const override {
    if (budget.adjacency != Adjacency::kReplaceOne)
      return usage_error("given matrices are averages or sums whose number of rows is public: use replace-one");
    return eigenveil::check(options_, shape.columns);
  }
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    return plan_matrices(budget.adjacency, options_);
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    return sums_bytes(options_, columns, options_.components, threads);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& /*budget*/) const override {
    const auto found = EIGENVEIL_TRY(fit_matrices(oracle, options_));
    const auto d = found.vectors.rows();
    Fit fit{{{"vectors", found.vectors}, {"eigenvalues", found.values, true}, {"mean", Vector::Zero(d), true}},
            static_cast<double>(*oracle.shape().rows)};
    fit.warnings.emplace_back(
        "The guarantee rests on the two sensitivities that were given: nobody but their author can check them.");
    fit.judge = found.judge;
    add_solution(fit, found.ridge, found.noise_edge, found.values, found.notes);
    return fit;
  }

 private:
  GepOptions options_;
  double sensitivity_a_;
  double sensitivity_b_;
};

}  // namespace

std::unique_ptr<Estimator> estimator(GepOptions options, double sensitivity_a, double sensitivity_b) {
  return std::make_unique<GepEstimator>(std::move(options), sensitivity_a, sensitivity_b);
}

}  // namespace eigenveil
