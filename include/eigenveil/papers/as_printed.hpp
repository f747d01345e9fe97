// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"

namespace eigenveil::papers {

// Estimators as their papers print them (`--calibration paper`), for comparison: the paper's options, then the paper's
// noise (noise.hpp). What they say of themselves is what the caller asked for. Their plans have absolute noise, which
// is charged for what it costs.

/// 001 drops rows above a power of two, 000 has no filter and keeps s columns from the first round on.
PcaProgram as_printed(PcaProgram program, Epsilon epsilon, Delta delta);
/// The paper's step for one vector.
GepOptions as_printed(GepOptions options);
/// Its experiments have the step 0.1.
CcaOptions as_printed(CcaOptions options);

/// The program's plan with its paper's noise; the program is as printed.
PrivacyPlan plan(const PcaProgram& program, const Budget& budget);

std::unique_ptr<Estimator> estimator(PcaProgram program);
std::unique_ptr<Estimator> estimator(CovarianceProgram program, bool dense);
std::unique_ptr<Estimator> estimator(CcaOptions options);
std::unique_ptr<Estimator> estimator(ClassOptions options);
std::unique_ptr<Estimator> estimator(GepOptions options, double sensitivity_a, double sensitivity_b);
/// `inner` with 003's noise: it must be `batch` without a start.
std::unique_ptr<Estimator> estimator(const ClipOptions& options, std::unique_ptr<Estimator> inner);

/// Says in a manifest that a paper prescribed the noise, and what it was certified for.
void stamp(nlohmann::json& manifest, Epsilon asked, double certified);

}  // namespace eigenveil::papers

namespace eigenveil {

/// The estimator with the least noise that keeps the budget, or as its paper prints it.
template <class... Options>
std::unique_ptr<Estimator> estimator_by(Calibration calibration, Options... options) {
  if (calibration == Calibration::kPaper) return papers::estimator(std::move(options)...);
  return estimator(std::move(options)...);
}

}  // namespace eigenveil
