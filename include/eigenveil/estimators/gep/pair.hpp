#pragma once

#include "eigenveil/estimators/gep/gep.hpp"
#include "eigenveil/estimators/gep/pair_oracle.hpp"

namespace eigenveil {

// A v = lambda B v for two given matrices. once: both are released whole. each step: two products per round; with the
// paper's noise this is its algorithm 1 (algorithm 3 with a sparsity), whatever the model behind the matrices.

Status check(const GepOptions& options, std::size_t columns);

/// Every answer `fit_pair` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_pair(Adjacency adjacency, const GepOptions& options);

/// The same with the paper's noise: sigma = sensitivity sqrt(m / rho), absolute.
PrivacyPlan paper_plan_pair(Adjacency adjacency, const GepOptions& options, Epsilon epsilon, Delta delta);

Result<GepResult> fit_pair(Oracle& oracle, const GepOptions& options);

/// "gep". The sensitivities are what the caller said of the matrices: for the record.
std::unique_ptr<Estimator> estimator(GepOptions options, double sensitivity_a, double sensitivity_b);

}  // namespace eigenveil
