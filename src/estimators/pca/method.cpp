// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/method.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/pilot.hpp"
#include "remember.hpp"

namespace eigenveil {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"gram",   "power",  "sparse-power", "adaptive-power",
                                                    "spiked", "sphere", "pilot"};

bool iterates(const PcaProgram& program) {
  return program.method == PcaMethod::kPower || program.method == PcaMethod::kSparsePower ||
         program.method == PcaMethod::kAdaptivePower;
}

PowerOptions power_options(const PcaProgram& program) {
  PowerOptions power = program.power;
  if (program.method == PcaMethod::kPower) power.filter = RowFilter::kOff;
  return power;
}

}  // namespace

std::string_view name(PcaMethod method) { return kNames.at(static_cast<std::size_t>(method)); }

Result<PcaMethod> pca_method_from_name(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (text == kNames.at(i)) return static_cast<PcaMethod>(i);
  return usage_error(fmt::format(
      "`method` must be auto, gram, pilot, sphere, power, sparse-power, adaptive-power or spiked, but is '{}'", text));
}

Status check(const PcaProgram& program, std::size_t columns, const Budget& budget) {
  const PcaOptions& options = program.options;
  if (options.components < 1) return usage_error("`components` must be at least 1");
  if (options.components > columns)
    return bad_input(fmt::format("the data has {} columns, so `components` {} is too many; ask for at most {}", columns,
                                 options.components, columns));
  if (program.method == PcaMethod::kSparsePower && !options.sparsity)
    return usage_error("`method` sparse-power needs `sparsity` S: how many columns may have a loading");
  if (options.sparsity && program.method != PcaMethod::kGram && program.method != PcaMethod::kSparsePower)
    return usage_error(
        fmt::format("`sparsity` does not go with `method` {}; use gram or sparse-power", name(program.method)));
  if (options.sparsity && (*options.sparsity < options.components || *options.sparsity > columns))
    return usage_error(fmt::format("`sparsity` {} must lie between `components` {} and the {} columns of the data",
                                   *options.sparsity, options.components, columns));
  if (options.scale == Scale::kCorrelation && program.method != PcaMethod::kGram)
    return usage_error(fmt::format(
        "`scale` correlation needs a released matrix, and `method` {} releases none; use gram", name(program.method)));
  if (options.scale == Scale::kCorrelation && options.preparation.mean == MeanBy::kNone)
    return usage_error("`scale` correlation is about the mean: let `center` be mean or private");
  if (program.method == PcaMethod::kPilot && program.power.filter == RowFilter::kOff)
    return usage_error("`method` pilot needs a `filter`: shrink or drop");
  if (program.power.rounds < 1) return usage_error("`rounds` must be at least 1");
  const Matrix& start = program.start.directions;
  if (start.cols() > 0 && !iterates(program))
    return usage_error(
        fmt::format("`start` is where power, sparse-power and adaptive-power begin, and `method` {} does not",
                    name(program.method)));
  if (start.cols() > 0 && start.rows() != static_cast<Eigen::Index>(columns))
    return bad_input(
        fmt::format("`start` has directions of {} features, and the data has {}: they must be the same ones",
                    start.rows(), columns));
  if (!(program.power.grid_ratio >= 1.01 && program.power.grid_ratio <= 16))
    return usage_error(fmt::format("`grid_ratio` must lie between 1.01 and 16, but is {}", program.power.grid_ratio));
  if (program.method != PcaMethod::kSpiked) return {};
  if (program.spiked.rank && *program.spiked.rank < options.components)
    return usage_error(fmt::format("`rank` {} is below `components` {}: only as many components as the rank exist",
                                   *program.spiked.rank, options.components));
  return check(columns, budget.adjacency, program.spiked);
}

PrivacyPlan draft(const PcaProgram& program, Adjacency adjacency) {
  if (iterates(program)) return plan_power(adjacency, program.options, power_options(program));
  if (program.method == PcaMethod::kSpiked) return plan_spiked(adjacency, program.options.preparation, program.spiked);
  if (program.method == PcaMethod::kPilot) return plan_pilot(adjacency, program.options, power_options(program));
  return program.method == PcaMethod::kSphere ? plan_sphere(adjacency, program.options)
                                              : plan_gram(adjacency, program.options);
}

PrivacyPlan draft(PcaProgram program, const RowsShape& shape, const Budget& budget) {
  if (program.method == PcaMethod::kSphere) program.options.preparation.bound_by = BoundBy::kMiddle;
  program.options.preparation = with_shares(program.options.preparation, shape, budget);
  return draft(program, budget.adjacency);
}

Result<PrivacyPlan> plan(const PcaProgram& program, const Budget& budget) {
  return calibrate(draft(program, budget.adjacency), budget.epsilon, budget.delta, budget.accounting);
}

Result<PcaFit> fit(const PcaProgram& program, Oracle& oracle) {
  if (program.method == PcaMethod::kSpiked) {
    auto spiked = EIGENVEIL_TRY(fit_spiked(oracle, program.options.preparation, program.spiked));
    return PcaFit{std::move(spiked.pca), spiked.noise_variance, spiked.assumed};
  }
  auto pca = EIGENVEIL_TRY(
      iterates(program) ? fit_power(oracle, program.options, power_options(program), program.start.directions)
      : program.method == PcaMethod::kPilot  ? fit_pilot(oracle, program.options, power_options(program))
      : program.method == PcaMethod::kSphere ? fit_sphere(oracle, program.options)
                                             : fit_gram(oracle, program.options));
  return PcaFit{std::move(pca), {}};
}

std::size_t sums_bytes(const PcaProgram& program, std::size_t columns, int threads) {
  const bool spiked_power = program.method == PcaMethod::kSpiked && program.spiked.subspace == Subspace::kAdaptivePower;
  if (program.method == PcaMethod::kPilot) {  // either of two, and the sum that is kept for the rest
    PcaProgram gram = program, power = program;
    gram.method = PcaMethod::kGram;
    power.method = PcaMethod::kAdaptivePower;
    return std::max(sums_bytes(gram, columns, threads), sums_bytes(power, columns, threads)) +
           columns * (columns + 1) / 2 * sizeof(Int128);
  }
  const bool narrow = iterates(program) || spiked_power;
  std::size_t k = program.method == PcaMethod::kSpiked ? program.spiked.rank.value_or(1) : program.options.components;
  if (program.method == PcaMethod::kAdaptivePower || spiked_power) k = block_widths(k, columns, 1)[0];
  if (program.method == PcaMethod::kPower) k = std::min(columns, k + 2);
  // one sum per thread, the exact total (twice as wide), the released matrix and its solver
  const std::size_t plain = columns * (narrow ? k : columns) * sizeof(double) * (threads + 6);
  if (!narrow || program.method == PcaMethod::kPower || program.power.filter == RowFilter::kOff) return plain;
  // Of the first round, or of a later one: fine around the last threshold, coarse elsewhere.
  const std::size_t coarse = threshold_grid(1, columns, k, program.power.grid_ratio).size();
  const auto fine = static_cast<std::size_t>(6 * std::log(16.0) / std::log(program.power.grid_ratio)) + 3;
  const std::size_t grid = std::max(coarse, coarse / 3 + fine);
  return plain + sweep_bytes(columns, k, grid, threads);
}

std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns) {
  std::vector<PcaProgram> programs;
  if (columns <= kMostGramColumns || options.scale == Scale::kCorrelation)
    programs.push_back({PcaMethod::kGram, options});
  if (options.scale == Scale::kCorrelation) return programs;  // the others release no matrix
  if (columns <= kMostGramColumns && !options.sparsity) programs.push_back({PcaMethod::kSphere, options});
  const PcaMethod power = options.sparsity ? PcaMethod::kSparsePower : PcaMethod::kAdaptivePower;
  for (const std::size_t rounds : {4U, 8U, 16U}) programs.push_back({power, options, {.rounds = rounds}});
  return programs;
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
