// SPDX-License-Identifier: Apache-2.0
// A process that makes a ledger, is charged for a work, answers and closes it; killed where it is about to make any one
// of its calls that change something, and at random instants. Whoever comes next finds a whole ledger, one work and one
// charge at most, a charge for whatever has left, and brings the work to its end.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "ledger_testing.hpp"
#include "tests/support/stopper.hpp"

namespace eigenveil::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSteps = 2;

// How a process deals with its ledger. All but the first are mistakes, which must be found.
enum class Manner { kRight, kSendsFirst, kForgetsItsAnswers };

class KillsTest : public LedgerTest {
 protected:
  void begin_world() const {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry);
    std::ofstream(folder_ / "data") << "1,2\n";
  }

  // An answer is drawn once, and stored whole before anything is said about it.
  std::string answer(std::uint64_t step) const {
    const fs::path file = folder_ / ("answer" + std::to_string(step));
    if (manner_ == Manner::kForgetsItsAnswers || !fs::exists(file)) {
      std::ofstream(file.string() + ".new") << step << " " << std::random_device()() << "\n";
      fs::rename(file.string() + ".new", file);
    }
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What has left cannot be called back.
  void send(std::uint64_t step) const {
    const std::string line = answer(step);
    const int out = ::open((folder_ / "outside").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    (void)!::write(out, line.data(), line.size());
    ::close(out);
  }

  // From wherever the work is to its end; 0 if it came there.
  int go_on() const {
    auto ledger = Ledger::open(path());
    if (!ledger.ok() || !ledger->create_if_missing(budget("d", 1, 1e-6)).ok()) return 1;
    const auto files = ledger->hash_files({(folder_ / "data").string()});
    if (!files.ok()) return 2;
    auto begun = ledger->begin_work({"d", *files}, plan_, "a study", "study", {{{"proposal", "p"}}});
    if (!begun.ok()) {
      const auto there = ledger->find_work("study");
      return there.ok() && there->has_value() && is_final((*there)->state) ? 0 : 3;
    }
    Work& work = *begun->work;
    if (!work.meet("roster").ok()) return 4;
    if (end_ == WorkState::kEnded) return work.close(end_).ok() ? 0 : 5;
    if (work.record().step > 0) send(work.record().step);  // it may not have left
    for (std::uint64_t step = work.record().step + 1; step <= kSteps; ++step) {
      (void)answer(step);
      if (manner_ == Manner::kSendsFirst) send(step);
      if (!work.advance(step, "h" + std::to_string(step)).ok()) return 6;
      if (manner_ != Manner::kSendsFirst) send(step);
    }
    return work.close(end_).ok() ? 0 : 7;
  }

  std::map<std::uint64_t, std::set<std::string>> sent() const {
    std::map<std::uint64_t, std::set<std::string>> sent;
    std::ifstream in(folder_ / "outside");
    for (std::string line; std::getline(in, line);) sent[std::stoull(line)].insert(line);
    return sent;
  }

  // What is wrong after a kill; empty if nothing is.
  std::string wrong() const {
    auto ledger = Ledger::open(path());
    if (!ledger.ok()) return ledger.error().message;
    if (const auto rows = ledger->verify(); !rows.ok()) return rows.error().message;
    const auto left = sent();
    for (const auto& [step, answers] : left)
      if (answers.size() > 1) return "two answers to step " + std::to_string(step);
    const auto status = ledger->show("d");
    if (!status.ok()) return left.empty() ? "" : status.error().message;  // killed before there was a data set
    if (status->frozen) return "the ledger takes itself for an older copy";
    if (status->works.size() > 1 || status->reservations.size() != status->works.size())
      return "works and charges do not go together";
    const std::string bound = query(path(), "SELECT count(*) FROM file");
    if (bound != std::to_string(status->reservations.size())) return "the file is bound without a charge, or not by it";
    if (left.empty()) return "";
    if (status->works.empty() || status->works[0].step < left.rbegin()->first) return "an answer that is not recorded";
    if (status->reservations[0].state != ReservationState::kAnswered) return "an answer that is not charged";
    return "";
  }

  std::string wrong_at_the_end() const {
    if (const int exit = in_child([&] { return go_on(); }); exit != 0)
      return "the next process stops with " + std::to_string(exit);
    if (std::string found = wrong(); !found.empty()) return found;
    const auto status = open().show("d");
    const bool ended = end_ == WorkState::kEnded;
    if (status->works.size() != 1 || status->works[0].state != end_) return "the work has not come to its end";
    if (sent().size() != (ended ? 0 : kSteps)) return "not everything was answered";
    const auto state = ended ? ReservationState::kReturned : ReservationState::kAnswered;
    return status->reservations[0].state == state ? "" : "the charge is not what it should be at the end";
  }

  // Processes one after the other, each killed at its call of that number, and a last one that is not. `killed_`: how
  // many of them came so far.
  std::string after_kills_at(const std::vector<int>& stops) {
    begin_world();
    killed_ = 0;
    for (const int stop : stops) {
      killed_ += killed_at(stop, [&] { return go_on(); }) == -SIGKILL ? 1 : 0;
      if (std::string found = wrong(); !found.empty()) return found;
    }
    return wrong_at_the_end();
  }

  // Every call of a process: what was found first, and where.
  std::string after_a_kill_anywhere() {
    for (stops_ = 0;; ++stops_) {
      const std::string found = after_kills_at({stops_});
      if (!found.empty()) return "call " + std::to_string(stops_) + ": " + found;
      if (killed_ == 0) return "";
    }
  }

  static bool nightly() { return std::getenv("EIGENVEIL_NIGHTLY") != nullptr; }

  const PrivacyPlan plan_ = gaussian(0.1, kSteps);
  Manner manner_ = Manner::kRight;
  WorkState end_ = WorkState::kClosed;
  int stops_ = 0;
  int killed_ = 0;
};

TEST_F(KillsTest, KilledAtAnyCallAWorkGoesOnWithOneChargeAndOneAnswerPerStep) {
  EXPECT_EQ(after_a_kill_anywhere(), "");
  EXPECT_GT(stops_, 100) << "all transactions were visited";
}

TEST_F(KillsTest, KilledAtAnyCallAWorkThatEndsUnansweredIsGivenBackOnce) {
  end_ = WorkState::kEnded;
  EXPECT_EQ(after_a_kill_anywhere(), "");
  EXPECT_GT(stops_, 60);
}

TEST_F(KillsTest, ThreeKillsInARowAreNoWorseThanOne) {
  std::mt19937 random(20261117);
  std::uniform_int_distribution<int> call(0, 200);
  for (int round = 0; round < (nightly() ? 5000 : 20); ++round) {
    const std::vector<int> stops = {call(random), call(random), call(random)};
    ASSERT_EQ(after_kills_at(stops), "") << ::testing::PrintToString(stops);
  }
}

TEST_F(KillsTest, KilledAtRandomInstantsItGoesOnToo) {
  std::mt19937 random(20261117);
  std::uniform_real_distribution<double> halvings(0, 9);  // from 20 ms down to 40 us: machines differ
  const int rounds = nightly() ? 3000 : 20;
  int killed = 0;
  for (int round = 0; round < rounds; ++round) {
    begin_world();
    for (int process = 0; process < 3; ++process) {
      const pid_t child = ::fork();
      if (child == 0) leave_with([&] { return go_on(); });
      ::usleep(static_cast<useconds_t>(20000 * std::exp2(-halvings(random))));
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
      killed += WIFSIGNALED(status) ? 1 : 0;
      ASSERT_EQ(wrong(), "") << "round " << round;
    }
    ASSERT_EQ(wrong_at_the_end(), "") << "round " << round;
  }
  EXPECT_GT(killed, 0);
}

TEST_F(KillsTest, AnAnswerThatLeavesBeforeItsChargeIsFound) {
  manner_ = Manner::kSendsFirst;
  EXPECT_THAT(after_a_kill_anywhere(), ::testing::HasSubstr("not recorded"));
}

TEST_F(KillsTest, AnAnswerThatIsDrawnAnewIsFound) {
  manner_ = Manner::kForgetsItsAnswers;
  EXPECT_THAT(after_a_kill_anywhere(), ::testing::HasSubstr("two answers"));
}

}  // namespace
}  // namespace eigenveil::test
