// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class ClipMethod {
  kCross,     ///< S_xy once; the paper's linear objective (its eq. 5.1), solved exactly
  kWhitened,  ///< S_xy, S_xx and S_yy once: canonical correlations
  kPrompt,    ///< classes: the contrastive loss over their captions, by noisy sweeps over all rows
  kBatch,     ///< the paper's algorithm 1: the gradient of a Poisson batch's loss, clipped as a whole
  kPair,      ///< the same loss, the gradient of each similarity clipped by itself
};

enum class Optimizer { kSgd, kAdam, kAdamW };

}  // namespace eigenveil
