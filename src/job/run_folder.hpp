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

/// The folder of a training run: run.json (what the run is, its plan included, written once), checkpoint.npz (the last
/// state, replaced as a whole) and run.lock. One process at a time; a copy of a folder is refused, because two
/// runs that go on from one state would be two releases for one charge.
class RunFolder {
 public:
  /// Refuses a folder that holds a run already.
  static Result<RunFolder> begin(const std::string& path, nlohmann::json run);
  /// Refuses a folder without a run, a copy, and a run that was stopped.
  static Result<RunFolder> reopen(const std::string& path);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();  ///< lets go of the lock

  const nlohmann::json& run() const { return run_; }
  Result<std::optional<TrainingState>> load() const;
  /// On disk before it returns.
  Status save(const TrainingState& state) const;
  /// The run ends here for good: it is not to be resumed.
  Status stop(const std::string& why) const;
  /// The run never began.
  void discard() const;

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  static Result<RunFolder> locked(const std::string& path);
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string path_;
  int lock_;
  nlohmann::json run_;
};

}  // namespace eigenveil
