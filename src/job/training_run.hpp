// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "eigenveil/job/clip_train.hpp"
#include "run_folder.hpp"

namespace eigenveil {

/// The options of a run that a manifest tells.
nlohmann::json training_options_json(const ClipTrainJob& job);

/// What a run's noisy answers are called in its plan: the gradient of a batch's loss, and the sum of those of pairs.
inline constexpr const char* kNoisyGradient = "noisy gradient";
inline constexpr const char* kNoisySum = "noisy sum of gradients";

/// A run as it is before its first step, or before the step that it goes on with: charged once, however often it is
/// resumed, and held by this process alone.
class TrainingRun {
 public:
  /// `files` are hashes of what the run reads, by name; they and the options are pinned in the ledger.
  static Result<TrainingRun> open(const ClipTrainJob& job, const std::map<std::string, std::string>& files,
                                  const Vector& parameters, Observer& observer);

  TrainingState& state() { return state_; }
  long long steps() const { return state_.descent.steps; }
  ChargedWork& charge() { return charge_; }
  /// The stream of the steps that are left: not one that was drawn from before.
  SecureRandom take_random(const ClipTrainJob& job);

  /// Seals the state on disk, then has the ledger keep its key: only then is it the state that may be gone on with.
  Status checkpoint();
  /// The run came to its end and was written out.
  Status finish() { return charge_.work->close(WorkState::kClosed); }
  /// A step failed on private pairs: the run ends for good, and what it has is kept.
  Error stop(const ClipTrainJob& job, const Error& why);

 private:
  TrainingRun(ChargedWork charge, std::optional<RunFolder> folder, TrainingState state)
      : charge_(std::move(charge)), folder_(std::move(folder)), state_(std::move(state)) {}
  ChargedWork charge_;
  std::optional<RunFolder> folder_;
  TrainingState state_;
};

}  // namespace eigenveil
