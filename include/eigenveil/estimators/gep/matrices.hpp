// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/gep/gep.hpp"
#include "eigenveil/estimators/gep/matrix_oracle.hpp"

namespace eigenveil {

// A v = lambda B v for two given matrices. once: both are released whole. each step: two products per round; with the
// paper's noise this is its algorithm 1 (algorithm 3 with a sparsity), whatever the model behind the matrices.

Status check(const GepOptions& options, std::size_t columns);

/// Every answer `fit_matrices` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_matrices(Adjacency adjacency, const GepOptions& options);

Result<GepResult> fit_matrices(Oracle& oracle, const GepOptions& options);

/// "gep". The sensitivities are what the caller said of the matrices: for the record.
std::unique_ptr<Estimator> estimator(GepOptions options, double sensitivity_a, double sensitivity_b);

}  // namespace eigenveil
