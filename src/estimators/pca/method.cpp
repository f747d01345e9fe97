#include "eigenveil/estimators/pca/method.hpp"

#include <fmt/format.h>

#include <array>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/paper.hpp"

namespace eigenveil {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"gram", "power", "sparse-power", "adaptive-power", "spiked"};

bool iterates(const PcaProgram& program) {
  return program.method == PcaMethod::kPower || program.method == PcaMethod::kSparsePower ||
         program.method == PcaMethod::kAdaptivePower;
}

// Plain power has no filter; neither has 000's method, and 001's drops rows above a power of two.
PowerOptions power_options(const PcaProgram& program, const Budget& budget) {
  PowerOptions power = program.power;
  if (program.method == PcaMethod::kPower) power.filter = RowFilter::kOff;
  if (budget.calibration == Calibration::kTight) return power;
  power.filter = program.method == PcaMethod::kAdaptivePower ? RowFilter::kDrop : RowFilter::kOff;
  power.grid_ratio = 2;
  power.narrow = false;
  power.rows_above = paper_rows_above(power.rounds, budget.epsilon, budget.delta);
  return power;
}

PrivacyPlan shape(const PcaProgram& program, const Budget& budget) {
  if (iterates(program)) return plan_power(budget.adjacency, program.options, power_options(program, budget));
  if (program.method == PcaMethod::kSpiked)
    return plan_spiked(budget.adjacency, program.options.preparation, program.spiked);
  return plan_gram(budget.adjacency, program.options);
}

PrivacyPlan paper_plan(const PcaProgram& program, const Budget& budget) {
  PrivacyPlan weights = shape(program, budget);
  if (program.method == PcaMethod::kGram)
    return paper_gram(std::move(weights), budget.adjacency, budget.epsilon, budget.delta);
  if (program.method == PcaMethod::kSpiked) return paper_spiked(std::move(weights), budget.epsilon, budget.delta);
  if (program.method == PcaMethod::kAdaptivePower)
    return paper_adaptive_power(std::move(weights), budget.adjacency, program.power.rounds, budget.epsilon,
                                budget.delta);
  return paper_sparse_power(std::move(weights), budget.adjacency, program.power.rounds, program.options.components,
                            budget.epsilon, budget.delta);
}

Status check_paper(const PcaProgram& program) {
  if (program.options.preparation.private_mean || program.options.preparation.private_bound)
    return usage_error(
        "--calibration paper reproduces a paper as it is, with rows that are centred and bounded already: use --center "
        "range or none and a public --row-bound");
  if (program.method != PcaMethod::kSpiked) return {};
  if (program.spiked.guarantee != Guarantee::kModel || !program.spiked.noise_variance || !program.spiked.spike)
    return usage_error(
        "--calibration paper for spiked is the paper's algorithm: it needs --guarantee model, --noise-variance and "
        "--spike");
  return {};
}

}  // namespace

std::string_view name(PcaMethod method) { return kNames.at(static_cast<std::size_t>(method)); }

Result<PcaMethod> pca_method_from_name(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (text == kNames.at(i)) return static_cast<PcaMethod>(i);
  return usage_error(
      fmt::format("--method must be auto, gram, power, sparse-power, adaptive-power or spiked, but is '{}'", text));
}

Status check(const PcaProgram& program, std::size_t columns, const Budget& budget) {
  const PcaOptions& options = program.options;
  if (options.components < 1) return usage_error("--components must be at least 1");
  if (options.components > columns)
    return bad_input(fmt::format("the data has {} columns, so --components {} is too many; ask for at most {}", columns,
                                 options.components, columns));
  if (program.method == PcaMethod::kSparsePower && !options.sparsity)
    return usage_error("--method sparse-power needs --sparsity S: how many columns may have a loading");
  if (options.sparsity && program.method != PcaMethod::kGram && program.method != PcaMethod::kSparsePower)
    return usage_error(
        fmt::format("--sparsity does not go with --method {}; use gram or sparse-power", name(program.method)));
  if (options.sparsity && (*options.sparsity < options.components || *options.sparsity > columns))
    return usage_error(fmt::format("--sparsity {} must lie between --components {} and the {} columns of the data",
                                   *options.sparsity, options.components, columns));
  if (program.power.rounds < 1) return usage_error("--rounds must be at least 1");
  if (!(program.power.grid_ratio >= 1.01 && program.power.grid_ratio <= 16))
    return usage_error(fmt::format("--grid-ratio must lie between 1.01 and 16, but is {}", program.power.grid_ratio));
  if (budget.calibration == Calibration::kPaper) EIGENVEIL_TRY(check_paper(program));
  if (program.method != PcaMethod::kSpiked) return {};
  if (program.spiked.rank && *program.spiked.rank < options.components)
    return usage_error(fmt::format("--rank {} is below --components {}: only as many components as the rank exist",
                                   *program.spiked.rank, options.components));
  return check(columns, budget.adjacency, program.spiked);
}

PrivacyPlan draft(const PcaProgram& program, const Budget& budget) {
  return budget.calibration == Calibration::kPaper ? paper_plan(program, budget) : shape(program, budget);
}

Result<PrivacyPlan> plan(const PcaProgram& program, const Budget& budget) {
  if (budget.calibration == Calibration::kPaper) return draft(program, budget);
  return calibrate(draft(program, budget), budget.epsilon, budget.delta, budget.accounting);
}

Result<PcaFit> fit(const PcaProgram& program, const Budget& budget, Oracle& oracle) {
  if (program.method == PcaMethod::kSpiked) {
    auto spiked = EIGENVEIL_TRY(fit_spiked(oracle, program.options.preparation, program.spiked));
    return PcaFit{std::move(spiked.pca), spiked.noise_variance, spiked.assumed};
  }
  auto pca = EIGENVEIL_TRY(iterates(program) ? fit_power(oracle, program.options, power_options(program, budget))
                                             : fit_gram(oracle, program.options));
  return PcaFit{std::move(pca), {}};
}

std::size_t sums_bytes(const PcaProgram& program, std::size_t columns, int threads) {
  const bool spiked_power = program.method == PcaMethod::kSpiked && program.spiked.subspace == Subspace::kAdaptivePower;
  const std::size_t k =
      program.method == PcaMethod::kSpiked ? program.spiked.rank.value_or(1) : program.options.components;
  const bool narrow = iterates(program) || spiked_power;
  // one sum per thread, the exact total (twice as wide), the released matrix and its solver
  const std::size_t plain = columns * (narrow ? k : columns) * sizeof(double) * (static_cast<std::size_t>(threads) + 6);
  if (!narrow || program.method == PcaMethod::kPower || program.power.filter == RowFilter::kOff) return plain;
  const std::size_t grid = threshold_grid(1, columns, k, program.power.grid_ratio).size();
  return plain + sweep_bytes(columns, k, grid, threads);
}

std::string describe(const PcaProgram& program) {
  std::string text(name(program.method));
  if (iterates(program)) text += fmt::format(", {} rounds", program.power.rounds);
  if (program.method == PcaMethod::kSpiked && program.spiked.guarantee == Guarantee::kStrict)
    text += program.spiked.subspace == Subspace::kGram
                ? ", subspace by gram"
                : fmt::format(", subspace by adaptive-power, {} rounds", program.spiked.power.rounds);
  if (program.options.sparsity) text += fmt::format(", {} loadings", *program.options.sparsity);
  return text;
}

}  // namespace eigenveil
