// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/estimators/clip/optimizer.hpp"
#include "eigenveil/estimators/preparation.hpp"

namespace eigenveil {

// Joint embeddings of two views of a row, from noisy sums (Zhu, Nakada, Zhang et al. 2023 train them by noisy
// gradients; where the heads are linear, sums do better):
//   f(x) = W_1 (x - m_1),   g(y) = W_2 (y - m_2)
// Either a row is a pair (x, y), or it is x alone with a class k whose caption y_k is public.

/// f(x) = G_1 x, g(y) = G_2 y
struct LinearHeads {
  Matrix G1;  ///< r x d1
  Matrix G2;  ///< r x d2
};

/// A learning rate that suits the optimizer.
constexpr double default_rate(Optimizer optimizer) { return optimizer == Optimizer::kAdam ? 0.01 : 0.5; }

/// How `batch` and `pair` train.
struct ClipTraining {
  bool linear = false;         ///< batch: the paper's eq. 5.1 instead of its eq. 2.2
  double temperature = 1;      ///< tau
  double clip = 1;             ///< batch: c, of a batch's gradient; pair: C, of a similarity's
  double sample_rate = 0.005;  ///< q: each pair is in a batch with this probability
  std::size_t steps = 1000;    ///< T
  Optimizer optimizer = Optimizer::kAdam;
  double rate = default_rate(Optimizer::kAdam);  ///< eta
};

struct ClipOptions {
  ClipMethod method;
  std::size_t dim;            ///< r
  Matrix captions = {};       ///< K x d2, a public row of unit length for each class; empty: rows are pairs
  std::size_t x_columns = 0;  ///< pairs: the first columns of a row are x, the others y
  double alpha = 1;           ///< weight of the penalty of eq. 5.1
  bool count_rows = false;    ///< what all rows weigh is private: PreparationOptions

  // prompt. How these were chosen: docs/results/clip.md.
  std::size_t sweeps = 60;
  double clip = 0.1;  ///< C, of rows of length one
  double step = 180;  ///< eta, for the mean gradient
  double momentum = 0.9;
  double average = 0.3;      ///< share of the last iterates that are averaged
  double gram_share = 0.25;  ///< of the budget's mu^2
  double floor = 0.5;        ///< eigenvalues are lifted to this many times what noise makes of a zero matrix

  ClipTraining training = {};  ///< batch, pair
  LinearHeads start = {};      ///< of the training: public or released; empty: random. Classes: G2 is r x (K - 1)
  std::optional<ClipMethod> start_by =
      {};                     ///< cross or whitened, asked first, of the same plan: the start is its heads
  double start_weight = 0.1;  ///< root of its mu^2, relative to 1 / sigma of a batch
};

struct ClipResult {
  Matrix image_weights;  ///< r x d1
  Vector image_mean;
  Matrix text_weights;  ///< r x d2
  Vector text_mean;
  double rows;  ///< public, or a released count; 0: not released (batch, pair without start_by)
};

Status check(const RowsShape& shape, const ClipOptions& options);

/// Sets what depends on the budget: the less noise, the further a sweep may go; start_by gets three tenths of mu^2.
void follow_budget(ClipOptions& options, Epsilon epsilon, Delta delta);

/// How many directions of a public basis are worth their noise.
std::size_t public_directions(Epsilon epsilon);

/// Why noise will hide everything of such rows, if it will: from their public number.
std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget, const ClipOptions& options);

/// Every answer `fit_clip` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_clip(Adjacency adjacency, const ClipOptions& options);

/// The oracle's plan is what `calibrate` made of `plan_clip`.
Result<ClipResult> fit_clip(Oracle& oracle, const ClipOptions& options);

/// The minimiser of -tr(G_1 S G_2^T) + (alpha / 4) ||G G^T - I||^2, G = [G_1 G_2] with r rows, up to rotation (the
/// paper's lemma D.6): G_1 = (I + Lambda / alpha)^(1/2) P^T / sqrt(2), G_2 likewise with Q, S = P Lambda Q^T.
Result<LinearHeads> solve_linear(const Matrix& S, std::size_t r, double alpha);

/// The gradient of that objective: (-G_2 S^T, -G_1 S) + alpha (G G^T - I) G.
LinearHeads linear_gradient(const LinearHeads& G, const Matrix& S, double alpha);

}  // namespace eigenveil
