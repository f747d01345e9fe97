// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/clip.hpp"

namespace eigenveil {

// Training by noisy gradients of Poisson batches. Contrastive losses compare every pair of a batch with every other, so
// a batch's gradient is no sum over rows: it is asked with `Oracle::ask_batch`, which only the local engine answers.

/// How pairs come out of the rows of a batch.
struct PairViews {
  RowMajorMatrix x;  ///< m x d1
  RowMajorMatrix y;  ///< m x d2
};
/// `texts` has a row for each class; without rows, the first `x_columns` columns of a row are x and the others y.
PairViews pair_views(const Batch& batch, std::size_t x_columns, const Matrix& texts);

/// The paper's eq. 2.2 and its gradient: cosine similarities, softmax over the batch both ways, mean over the pairs.
double contrastive_loss(const LinearHeads& heads, const PairViews& pairs, double temperature);
LinearHeads contrastive_gradient(const LinearHeads& heads, const PairViews& pairs, double temperature);

/// The gradient of the paper's eq. 5.1 on a batch; of fewer than two pairs only the penalty is left.
LinearHeads linear_batch_gradient(const LinearHeads& heads, const PairViews& pairs, double alpha);

/// The contrastive gradient with the gradient of each similarity clipped to norm <= C: pair.proof.md.
class PairGradient final : public BatchQuery {
 public:
  PairGradient(LinearHeads heads, double temperature, double clip, std::size_t x_columns, Matrix texts);

  /// How far one pair more than m moves the sum, and that for every m: 2 C (1 + e^(2/temperature)).
  static double bound(std::size_t m, double temperature, double clip);
  static double bound(double temperature, double clip);
  /// e^(2/temperature), rounded up: what batches must be much larger than.
  static double spread(double temperature);

  /// F(B): 2 / (temperature m) of it is the contrastive gradient, but for the clipping.
  LinearHeads sum(const PairViews& pairs) const;

  Result<PrivateSum> exact(const Batch& batch) const override;
  Sensitivity sensitivity() const override;

 private:
  LinearHeads heads_;
  double temperature_;
  double clip_;
  std::size_t x_columns_;
  Matrix texts_;
};

/// Heads as one vector, and back.
Vector flat(const LinearHeads& heads);
LinearHeads from_flat(const Vector& theta, const LinearHeads& shape);

/// Public heads to start from: random orthonormal rows.
LinearHeads starting_heads(std::size_t r, std::size_t d1, std::size_t d2);

/// `batch` and `pair`: part of `check`, `plan_clip` and `fit_clip`.
Status check_training(const ClipOptions& options, std::size_t d1, std::size_t d2);
PrivacyPlan plan_training(const ClipOptions& options);
Result<ClipResult> fit_training(Oracle& oracle, const ClipOptions& options);

}  // namespace eigenveil
