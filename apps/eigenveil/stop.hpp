// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "eigenveil/base/interrupted.hpp"
#include "eigenveil/intake/charge.hpp"

namespace eigenveil::app {

/// How far a run is with spending.
enum class Stage : int {
  kFree,       ///< nothing is charged
  kReserving,  ///< the ledger is at work
  kCharged,    ///< and has charged it; nothing was asked
  kAsking,     ///< an answer may have been computed
  kAnswered,   ///< all were: what is left is to write them down
};

/// What somebody who stops a run has to know about it.
struct Bearings {
  bool ledger = true;      ///< a ledger of this machine is charged
  std::string path = {};   ///< its file; empty: the one by default
  std::string again = {};  ///< how work that outlives its process goes on; empty: it does not
  bool at_once = false;    ///< it ends as if it were killed: whoever else takes part must not hear that it is over
  static Bearings of(const PrivacyOptions& privacy);
};

/// A run that stopped because somebody asked for it: what was charged, and what can be done.
struct Stopped : Interrupted {
  std::string words;
  int exit_code = 0;
};

/// As long as it lives, Ctrl-C, SIGTERM and SIGHUP do not end the process where it stands: what they stop says what was
/// charged. A run in kFree, kCharged and kAsking ends with its observer's next call (`Stopped`), and one that does not
/// come to it soon ends anyway; one that waits for the ledger or has all its answers goes on to where nothing is lost.
/// A second signal ends it at once.
class StopSignals {
 public:
  explicit StopSignals(Bearings bearings);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// Takes note of a step, and throws `Stopped` where the run should end.
  void step(std::string_view name);
  /// Throws likewise.
  void check();

 private:
  void watch();
  [[noreturn]] void end(int signal) const;
  std::string words(bool cut_off) const;

  const Bearings bearings_;
  std::atomic<Stage> stage_ = Stage::kFree;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> leaving_ = false;
  mutable std::mutex charged_mutex_;
  std::string charged_;  // "entry 3 of 'patients'"
  int earlier_ = 0;      // runs of the same process that came to their end
  std::thread watcher_;
};

/// Prints what was charged; under --json as an object on stdout, too.
void say_stopped(const std::string& words, int exit_code);

}  // namespace eigenveil::app
