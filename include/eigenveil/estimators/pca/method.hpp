#pragma once

#include <string_view>

#include "eigenveil/estimators/budget.hpp"
#include "eigenveil/estimators/pca/spiked.hpp"

namespace eigenveil {

enum class PcaMethod {
  kGram,           ///< one noisy covariance matrix: n d^2 time, d^2 memory
  kPower,          ///< noisy subspace iteration
  kSparsePower,    ///< the same with few loadings, filtered
  kAdaptivePower,  ///< the same with a filter that adapts to the rows: for many columns
  kSpiked,         ///< a few components and one noise variance
};

std::string_view name(PcaMethod method);
Result<PcaMethod> pca_method_from_name(std::string_view text);

/// One of the PCA methods with all its options: what the planner forecasts and a job runs.
struct PcaProgram {
  PcaMethod method;
  PcaOptions options;
  PowerOptions power = {};
  SpikedOptions spiked = {};
};

struct PcaFit {
  PcaResult pca;
  std::optional<double> noise_variance;            ///< spiked
  std::optional<AssumedSensitivity> assumed = {};  ///< spiked, with a guarantee that rests on the model
};

/// Refuses options that do not go together, and what does not fit the number of columns.
Status check(const PcaProgram& program, std::size_t columns, const Budget& budget);

/// Every answer the program will ask for: with relative weights for `calibrate`, or with a paper's own noise.
PrivacyPlan draft(const PcaProgram& program, const Budget& budget);
/// The same with its noise settled.
Result<PrivacyPlan> plan(const PcaProgram& program, const Budget& budget);

/// The oracle's plan is what `plan` gave.
Result<PcaFit> fit(const PcaProgram& program, const Budget& budget, Oracle& oracle);

/// Bytes of the program's own sums besides the rows.
std::size_t sums_bytes(const PcaProgram& program, std::size_t columns, int threads);

/// "gram", "adaptive-power, 4 rounds", ...
std::string describe(const PcaProgram& program);

}  // namespace eigenveil
