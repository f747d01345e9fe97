// SPDX-License-Identifier: Apache-2.0
#include "stop.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "terminal.hpp"

namespace eigenveil::app {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr unsigned char kQuit = 0;
constexpr int kForever = -1;

struct Caught {
  std::array<int, 2> pipe = {-1, -1};
  std::array<struct sigaction, kSignals.size()> before{};
};
Caught& caught() {
  static Caught state;
  return state;
}

// A handler, and no mask: programs that this one starts have the signals as they were.
void on_signal(int signal) {
  const int kept = errno;
  const auto number = static_cast<unsigned char>(signal);
  (void)!::write(caught().pipe[1], &number, 1);
  errno = kept;
}

// The next signal; kQuit at the end; -1 if none came in time.
int next_signal(int milliseconds) {
  pollfd ready{caught().pipe[0], POLLIN, 0};
  int count = 0;
  do count = poll(&ready, 1, milliseconds);
  while (count < 0 && errno == EINTR);
  unsigned char number = kQuit;
  return count > 0 && read(caught().pipe[0], &number, 1) == 1 ? number : count == 0 ? -1 : kQuit;
}

int exit_code_of(int signal) { return 128 + signal; }

// 'patients' of "entry 3 of 'patients'"
std::string dataset_in(const std::string& charged) {
  const std::size_t first = charged.find('\''), last = charged.rfind('\'');
  return first < last && last != std::string::npos ? charged.substr(first + 1, last - first - 1) : "NAME";
}

}  // namespace

Bearings Bearings::of(const PrivacyOptions& privacy) { return {.ledger = privacy.use_ledger, .path = privacy.ledger}; }

StopSignals::StopSignals(Bearings bearings) : bearings_(std::move(bearings)) {
  if (pipe2(caught().pipe.data(), O_CLOEXEC) != 0) return;  // signals end the process as ever
  watcher_ = std::thread([this] { watch(); });
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &caught().before[i]);
    // What was ignored when the program began (nohup, a job of a script) stays so.
    if (caught().before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  if (!watcher_.joinable()) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &caught().before[i], nullptr);
  (void)!::write(caught().pipe[1], &kQuit, 1);
  watcher_.join();
  for (int& end : caught().pipe) close(std::exchange(end, -1));
}

void StopSignals::watch() {
  const int first = next_signal(kForever);
  if (first == kQuit) return;
  signal_ = first;
  if (bearings_.at_once) end(first);
  for (bool told = false;;) {
    constexpr int kSoon = 300, kGrace = 1500;
    const Stage stage = stage_;
    const bool goes_on = leaving_ || stage == Stage::kReserving || stage == Stage::kAnswered;
    if (stage == Stage::kAnswered && !std::exchange(told, true))
      complain("\neigenveil: all answers are there and paid for; they are being written. Ctrl-C again loses them.\n");
    // While it goes on, it is looked at again: it may come to where it ends.
    const int second = next_signal(stage == Stage::kFree || goes_on ? kSoon : kGrace);
    if (second == kQuit) return;
    if (second > 0 || (!goes_on && !leaving_ && stage_ == stage)) end(first);
  }
}

void StopSignals::end(int signal) const {
  say_stopped(words(true), exit_code_of(signal));
  _exit(exit_code_of(signal));
}

void StopSignals::check() {
  const Stage stage = stage_;
  if (signal_ == 0 || bearings_.at_once || stage == Stage::kReserving || stage == Stage::kAnswered) return;
  leaving_ = true;  // what the ledger is told on the way out may take its time
  Stopped stopped;
  stopped.words = words(false);
  stopped.exit_code = exit_code_of(signal_);
  throw stopped;
}

void StopSignals::step(std::string_view name) {
  constexpr std::string_view kReserved = "budget reserved";
  if (name == "judging" || name.starts_with("writing ")) stage_ = Stage::kAnswered;
  if (name == "done" && stage_ != Stage::kFree) {
    ++earlier_;
    stage_ = Stage::kFree;
  }
  if (name == "done") return;
  check();
  if (name == "reserving budget") stage_ = Stage::kReserving;
  if (name.starts_with(kReserved)) {
    const std::lock_guard<std::mutex> lock(charged_mutex_);
    charged_ = name.size() > kReserved.size() + 2 ? name.substr(kReserved.size() + 2) : "";
    stage_ = Stage::kCharged;
    return;
  }
  if (name.starts_with("asking: ") || name == "training") stage_ = Stage::kAsking;
}

std::string StopSignals::words(bool cut_off) const {
  const std::lock_guard<std::mutex> lock(charged_mutex_);
  const Stage stage = stage_;
  if (!bearings_.again.empty() && (bearings_.at_once || stage != Stage::kFree)) return "stopped. " + bearings_.again;
  if (stage == Stage::kFree)
    return earlier_ > 0 ? "stopped. What was charged has been released; nothing more was."
                        : "stopped: nothing was charged.";
  if (!bearings_.ledger) return "stopped: nothing was released, and no ledger counts what was asked.";
  const std::string option = bearings_.path.empty() ? "" : " --ledger " + for_shell(bearings_.path);
  if (stage == Stage::kReserving)
    return "stopped while the budget was being reserved. If it was charged, it stays spent: eigenveil ledger list" +
           option + " tells.";
  if (stage == Stage::kCharged && !cut_off)
    return fmt::format(
        "stopped after {} was charged and before anything was asked: the ledger keeps it as unused, and gives it back "
        "with: eigenveil ledger release-unused {}{}",
        charged_, for_shell(dataset_in(charged_)), option);
  const char* why = stage == Stage::kCharged  ? "the run was cut off before it could say that nothing was asked"
                    : stage == Stage::kAsking ? "an answer may have been computed"
                                              : "all was answered, and the answers are lost";
  return fmt::format(
      "stopped after {} was charged: {}, so all of it stays spent. A fit that is cut off keeps nothing to go on "
      "from; to run it again is charged again.",
      charged_, why);
}

}  // namespace eigenveil::app
