// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/estimators/gep/choices.hpp"
#include "eigenveil/estimators/preparation.hpp"

namespace eigenveil {

// Generalized eigenproblems A v = lambda B v from noisy sums (Hu, Xiang, Liu, Wang 2023, and its sparse form):
//   pca  A = G, B = I        cca  A = cross-covariances of two views, B = their own
//   fda  A = between, B = within classes        sir  A = covariance of slice means, B = total
// Sums are released and turned into averages afterwards; every sensitivity is that of a query.

struct GepOptions {
  std::size_t components;  ///< K
  PreparationOptions preparation;
  GepNoise noise = GepNoise::kOnce;
  std::optional<std::size_t> sparsity;  ///< s: how many columns may have a weight; default: all
  GepStart start = GepStart::kAuto;
  std::size_t rounds = 15;     ///< m, each step: rounds, each a share of the budget
  std::optional<double> step;  ///< eta; default: one over the largest ||B v|| / ||v|| seen so far
  std::optional<double>
      ridge;             ///< added to the diagonal of B, in units of an average; default: what its noise asks for
  bool literal = false;  ///< each step, one vector: FlowOptions::literal
};

/// Solutions of A v = lambda B v for what was released.
struct GepResult {
  Vector values;   ///< descending
  Matrix vectors;  ///< d x K; once: V^T (B + ridge I) V = I for B as it was solved
  double ridge;
  double noise_edge;               ///< the largest value that noise alone would typically give; 0: not known
  std::vector<std::string> notes;  ///< what the solve met, in words for people
  Judge judge = {};                ///< of the vectors: once
};

/// Refuses options that do not go together, whatever the rows.
Status check(const GepOptions& options);

std::string_view name(GepNoise noise);
std::string_view name(GepStart start);

/// The options, as a manifest tells them.
nlohmann::json options_json(const GepOptions& options);

/// Bytes that a fit needs besides the rows. `width`: of the largest product or of the class sums.
std::size_t sums_bytes(const GepOptions& options, std::size_t columns, std::size_t width, int threads);

/// Ridge, noise edge and what the solve met, as a manifest tells them. `values`: eigenvalues or correlations.
void add_solution(Fit& fit, double ridge, double noise_edge, const Vector& values,
                  const std::vector<std::string>& notes);

}  // namespace eigenveil
