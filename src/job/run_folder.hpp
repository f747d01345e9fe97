// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "eigenveil/estimators/clip/optimizer.hpp"

namespace eigenveil {

/// Parameters under training and what their next step needs to know.
struct TrainingState {
  Vector parameters;
  DescentState descent;
};

/// The folder of a training run: run.json (what the run is, its plan included, written once) and two sealed states,
/// written in turn. The folder decides nothing: which state may be gone on with, and that the run has not been stopped
/// or gone on with elsewhere, is the ledger's to say, which keeps the one key. A copy, an older copy that is put back,
/// and a folder that was hard-linked therefore cannot be resumed: clip_train.proof.md.
class RunFolder {
 public:
  /// Refuses a folder that holds a run already.
  static Result<RunFolder> begin(const std::string& path, nlohmann::json run);
  /// Refuses a folder without a run.
  static Result<RunFolder> reopen(const std::string& path);

  const nlohmann::json& run() const { return run_; }
  /// Seals the state and writes it, on disk before it returns, beside the one that the ledger keeps the key of.
  Result<std::string> save(const TrainingState& state);
  /// Opens the state that this key was made for. Refuses a folder without it.
  Result<TrainingState> load(const std::string& key);
  /// The state as a plain file, state.npz: for a run that has stopped for good.
  Status keep(const TrainingState& state) const;
  /// The run never began.
  void discard() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string path_;
  nlohmann::json run_;
  std::size_t next_ = 0;  // of the two files, the one to be written next
};

}  // namespace eigenveil
