// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/optimizer.hpp"
#include "eigenveil/job/manifest.hpp"

namespace eigenveil {

/// Private training of a TorchScript module: T steps, each the gradient of a whole Poisson batch, clipped and noised.
struct ClipTrainJob {
  std::string module;                        ///< forward(images, tokens), or loss(batch)
  std::string loss_module;                   ///< on the embeddings of forward; empty: symmetric InfoNCE
  double temperature = 0.1;                  ///< of InfoNCE
  std::string data;                          ///< NPZ: arrays of the same rows
  std::optional<PersonOptions> person = {};  ///< an array of integers, whose pair it is; none: a pair is protected
  double clip = 0;                           ///< c: the gradient of a batch is scaled to this length at most
  double sample_rate = 0;                    ///< q: the probability of a pair to be in a batch
  long long steps = 0;                       ///< T
  Optimizer optimizer = Optimizer::kAdam;
  double lr = 1e-3;        ///< learning rate
  PrivacyOptions privacy;  ///< add-remove-one
  RunOptions run;
  std::string checkpoint;            ///< folder; empty: a run that is cut off is lost
  long long checkpoint_every = 100;  ///< steps
  bool resume = false;               ///< goes on with the run in the folder
  double module_seconds = 600;       ///< that the module may take for one batch
  std::string out;                   ///< the trained module
};

/// Returns the manifest, which is also in the module's file as eigenveil.json. What is released, and why a run that is
/// cut off and resumed costs nothing more: clip_train.proof.md.
Result<nlohmann::json> run_clip_train(const ClipTrainJob& job, Observer& observer);

}  // namespace eigenveil
