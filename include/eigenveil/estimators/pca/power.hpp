// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/choices.hpp"
#include "eigenveil/estimators/pca/pca.hpp"

namespace eigenveil {

// Noisy subspace iteration, Q <- qr(G Q + noise), as a family:
//   power           filter off                  (Hardt and Price 2014)
//   adaptive-power  filter shrink or drop       (Nguyen, Ene, Nguyen 2026); ours remembers all products: remember.hpp
//   sparse-power    PcaOptions::sparsity s      (distributed sparse PCA: the s rows of Q of largest norm are kept)
// A round is one sweep over the rows: O(n d k) time. Memory besides them is O(d k), filtered O(d k log d).

struct PowerOptions {
  std::size_t rounds = 8;  ///< T
  RowFilter filter = RowFilter::kShrink;
  double grid_ratio = 1.25;               ///< of consecutive thresholds; the paper's is 2
  double share_above = 0.5;               ///< share of rows that may exceed the threshold (drop: a twentieth of it)
  std::optional<double> rows_above = {};  ///< their number instead, as in the paper
  bool narrow = true;  ///< start wide, narrow and remember products; papers keep what is asked for from the first on
};

/// Where the rounds begin: orthonormal columns, and the mean eigenvalue if it is known.
struct PowerStart {
  Matrix directions;
  std::optional<double> level = {};
};

/// Columns of each round's block.
std::vector<std::size_t> power_widths(const PcaOptions& options, std::size_t columns, const PowerOptions& power);

/// The events of the rounds, of weight 1 together.
std::vector<PrivacyEvent> plan_rounds(const PcaOptions& options, const PowerOptions& power);

/// Asks for them: the method that remembers its products, of rows that are prepared.
Result<PcaResult> fit_rounds(Oracle& oracle, const PcaOptions& options, const PowerOptions& power,
                             const Preparation& prepared, const PowerStart& start);

/// The thresholds that a round searches, ascending; the last one always passes.
std::vector<double> threshold_grid(double radius, std::size_t d, std::size_t k, double ratio);

/// Every answer `fit_power` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_power(Adjacency adjacency, const PcaOptions& options, const PowerOptions& power);

/// The oracle's plan is what `calibrate` made of `plan_power`. `start`: d x m, columns of length 1, public or released:
/// the first directions; without any they are random.
Result<PcaResult> fit_power(Oracle& oracle, const PcaOptions& options, const PowerOptions& power,
                            const Matrix& start = {});

}  // namespace eigenveil
