// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/optimizer.hpp"
#include "eigenveil/job/manifest.hpp"

namespace eigenveil {

/// Private training of a TorchScript module: T steps, each of noisy gradients of Poisson batches. A loss that is a sum
/// over pairs is clipped pair by pair, one that couples them batch by batch; a module may have both.
struct ClipTrainJob {
  std::string module;        ///< sample_loss(batch); batch_loss(batch), loss(batch) or forward(images, tokens)
  std::string loss_module;   ///< on the embeddings of forward; empty: symmetric InfoNCE
  double temperature = 0.1;  ///< of InfoNCE
  std::string train;         ///< a pattern looked for in names of parameters; empty: what wants a gradient
  std::string data;          ///< NPZ: arrays of the same rows
  std::optional<PersonOptions> person = {};  ///< an array of integers, whose pair it is; none: a pair is protected
  std::optional<double> clip = {};           ///< the gradient of a batch's loss is scaled to this length; none: no such
  std::optional<double> sample_clip = {};    ///< likewise that of each pair's sample_loss
  double sample_rate = 0;                    ///< q: the probability of a pair to be in a batch
  std::optional<double> batch_rate = {};     ///< likewise where the loss is that of a batch; none: the same
  double sample_share = 0.5;                 ///< of the plan, for sample_loss, if both are trained
  double sample_weight = 1;                  ///< that the sum of the gradients of sample_loss is multiplied by
  std::size_t microbatch = 0;                ///< pairs in memory at a time; 0: as many as there are
  long long steps = 0;                       ///< T
  DescentOptions descent;
  PrivacyOptions privacy;  ///< add-remove-one
  RunOptions run;
  std::string public_pairs;          ///< NPZ of pairs that nobody owns, to tell the loss on; empty: none
  long long public_every = 100;      ///< steps
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
