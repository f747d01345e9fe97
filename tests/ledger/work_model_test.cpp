// SPDX-License-Identifier: Apache-2.0
// A small model of store, pay, answer, resume and end, over the real ledger and a real state folder. Processes end
// between any two steps; state folders are lost, restored, copied and raced for; the ledger comes back as an older
// copy; data is replaced. In every world that can be reached so: one answer per step, from one data file, and never an
// answer whose charge is not in the ledger or that the ledger does not know it may have lost.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAsks = 2;
constexpr int kNever = 100;  // a process that is not killed

// Mistakes that a site may make. The model must find each of them.
enum class Mistake {
  kNone,
  kStoresBeforeItPays,    // a stored proposal counts as a state folder, whatever became of the answers
  kTrustsItsFolder,       // takes the folder it finds for the one it left
  kLooksThenPays,         // "is it new?" and "pay" are two transactions
  kSendsBeforeItAdvances  // the ledger hears of an answer after it left
};

std::string text_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_in(const fs::path& path) {
  std::istringstream in(text_in(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What is outside of every machine: what was sent, and a source of noise that never repeats.
struct Outside {
  std::map<std::size_t, std::set<std::string>> sent;  // by step
  int draws = 0;
};

// One process of a site: each `step` does one thing that lasts. Destroyed between two steps, it was killed there.
class Site {
 public:
  Site(fs::path world, std::string state, std::string question, Mistake mistake, Outside& outside)
      : world_(std::move(world)),
        state_(world_ / state),
        question_(std::move(question)),
        mistake_(mistake),
        outside_(outside) {}

  // Whether it goes on.
  bool step() {
    switch (phase_) {
      case Phase::kStore:
        return store_key();
      case Phase::kLook:
        return look();
      case Phase::kPay:
        return pay();
      case Phase::kLog:
        return log();
      case Phase::kAdvance:
        return advance();
      case Phase::kSend:
        return send();
      case Phase::kClose:
        (void)work_->close(WorkState::kClosed);
        return false;
    }
    return false;
  }

  void run(int steps) {
    while (steps-- > 0 && step()) {
    }
  }

 private:
  enum class Phase { kStore, kLook, kPay, kLog, kAdvance, kSend, kClose };

  bool to(Phase phase) {
    phase_ = phase;
    return true;
  }

  bool store_key() {
    fs::create_directories(state_);
    had_state_ = fs::exists(state_ / "key");
    if (!had_state_) std::ofstream(state_ / "key") << "key " << ++outside_.draws;
    return to(mistake_ == Mistake::kLooksThenPays ? Phase::kLook : Phase::kPay);
  }

  bool look() {
    auto ledger = Ledger::open((world_ / "ledger.db").string());
    if (!ledger.ok()) return false;
    const auto there = ledger->find_work("study");
    if (!there.ok() || (there->has_value() && !had_state_)) return false;
    return to(Phase::kPay);
  }

  bool pay() {
    auto ledger = Ledger::open((world_ / "ledger.db").string());
    if (!ledger.ok()) return false;
    WorkFacts facts{{{"data", *ledger->content_key((world_ / "data").string())}}};
    const bool pins = mistake_ == Mistake::kNone || mistake_ == Mistake::kSendsBeforeItAdvances;
    if (pins) facts.pinned["key"] = text_in(state_ / "key");
    auto begun = ledger->begin_work("d", gaussian(0.1, kAsks), "", "study", facts);
    if (!begun.ok()) return false;
    work_ = std::move(begun->work);
    fresh_ = begun->fresh;
    return agrees() ? to(next_phase()) : false;
  }

  // Whether folder and ledger tell the same story; the log may be one ahead, with what was never sent.
  bool agrees() {
    const auto lines = lines_in(state_ / "log");
    if (mistake_ == Mistake::kStoresBeforeItPays) return fresh_ || had_state_;
    if (mistake_ == Mistake::kTrustsItsFolder || mistake_ == Mistake::kLooksThenPays) return true;
    const WorkRecord& record = work_->record();
    const bool same = lines.size() == record.step || lines.size() == record.step + 1;
    const bool heads = record.step == 0 || (same && lines[record.step - 1].rfind(record.head + "#", 0) == 0);
    if (same && heads && !(fresh_ && !lines.empty())) return true;
    (void)work_->close(WorkState::kLost);
    return false;
  }

  Phase next_phase() {
    if (done_ == kAsks) return Phase::kClose;
    return done_ < lines_in(state_ / "log").size() ? Phase::kAdvance : Phase::kLog;
  }

  // An answer is a question, noise that was drawn once, and the data it came from.
  bool log() {
    std::ofstream(state_ / "log", std::ios::app)
        << question_ << done_ << "#" << ++outside_.draws << "@" << text_in(world_ / "data") << "\n";
    return to(mistake_ == Mistake::kSendsBeforeItAdvances ? Phase::kSend : Phase::kAdvance);
  }

  bool advance() {
    const std::string head = question_ + std::to_string(done_);
    if (lines_in(state_ / "log").at(done_).rfind(head + "#", 0) != 0) return false;  // asked for something else before
    const bool steps = mistake_ == Mistake::kNone || mistake_ == Mistake::kSendsBeforeItAdvances;
    if (steps && done_ + 1 < work_->record().step) return to(Phase::kSend);
    if (!(steps ? work_->advance(done_ + 1, head) : work_->begin_answering()).ok()) return false;
    if (mistake_ != Mistake::kSendsBeforeItAdvances) return to(Phase::kSend);
    ++done_;
    return to(next_phase());
  }

  bool send() {
    const auto lines = lines_in(state_ / "log");
    if (done_ >= lines.size()) return false;
    outside_.sent[done_].insert(lines[done_]);
    if (mistake_ == Mistake::kSendsBeforeItAdvances) return to(Phase::kAdvance);
    ++done_;
    return to(next_phase());
  }

  fs::path world_, state_;
  std::string question_;
  Mistake mistake_;
  Outside& outside_;
  Phase phase_ = Phase::kStore;
  bool had_state_ = false, fresh_ = false;
  std::size_t done_ = 0;
  std::unique_ptr<Work> work_;
};

class WorkModelTest : public LedgerTest {
 protected:
  // An empty world: a ledger with a budget, a data file, and no state.
  void begin_world() {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry);
    outside_ = {};
    ASSERT_TRUE(open().create(budget("d", 1, 1e-6)).ok());
    std::ofstream(folder_ / "data") << "rows";
  }
  Site site(const std::string& state, const std::string& question) {
    return Site(folder_, state, question, mistake_, outside_);
  }
  void run(const std::string& state, const std::string& question, int steps) { site(state, question).run(steps); }

  // Copies of the ledger's file and of the state folder, as a backup or a snapshot makes them.
  void save(const char* name) {
    fs::create_directories(folder_ / name);
    fs::copy_file(folder_ / "ledger.db", folder_ / name / "ledger.db", fs::copy_options::overwrite_existing);
    if (fs::exists(folder_ / "state"))
      fs::copy(folder_ / "state", folder_ / name / "state",
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  void restore_state(const char* name) {
    fs::remove_all(folder_ / "state");
    if (fs::exists(folder_ / name / "state"))
      fs::copy(folder_ / name / "state", folder_ / "state", fs::copy_options::recursive);
  }
  void restore_ledger(const char* name) {
    fs::copy_file(folder_ / name / "ledger.db", folder_ / "ledger.db", fs::copy_options::overwrite_existing);
  }

  // What is wrong with the world as it is; empty if nothing is.
  std::string wrong() {
    std::set<std::string> data;
    for (const auto& [step, answers] : outside_.sent) {
      if (answers.size() > 1) return "two answers to step " + std::to_string(step);
      for (const std::string& answer : answers) data.insert(answer.substr(answer.find('@')));
    }
    if (data.size() > 1) return "answers from two data files";
    if (outside_.sent.empty()) return "";
    const auto status = open().show("d");
    if (!status.ok()) return status.error().message;
    if (status->frozen) return "";
    if (status->works.empty() || status->works[0].refunded) return "an answer without a charge";
    if (status->works[0].step < outside_.sent.size() && mistake_ == Mistake::kNone) return "an unrecorded answer";
    return "";
  }

  void note(const std::string& world) {
    ++worlds_;
    if (const std::string what = wrong(); !what.empty()) found_.push_back(world + ": " + what);
  }

  void explore_accidents();
  void explore_races();

  Mistake mistake_ = Mistake::kNone;
  Outside outside_;
  int worlds_ = 0;
  std::vector<std::string> found_;
};

// A first process is killed after any step; something happens; a second is killed after any step or not; a third ends.
void WorkModelTest::explore_accidents() {
  const std::vector<std::pair<std::string, std::function<void()>>> accidents = {
      {"nothing", [] {}},
      {"state lost", [&] { fs::remove_all(folder_ / "state"); }},
      {"log lost", [&] { fs::remove(folder_ / "state" / "log"); }},
      {"key lost", [&] { fs::remove(folder_ / "state" / "key"); }},
      {"state restored", [&] { restore_state("early"); }},
      {"ledger restored", [&] { restore_ledger("early"); }},
      {"both restored",
       [&] {
         restore_state("early");
         restore_ledger("early");
       }},
      {"data replaced", [&] { std::ofstream(folder_ / "data") << "others"; }},
      {"state copied and used there", [&] {
         fs::copy(folder_ / "early" / "state", folder_ / "twin", fs::copy_options::recursive);
         run("twin", "b", kNever);
       }}};
  const bool nightly = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  for (int early = 1; early <= 9; ++early)
    for (int first = early; first <= (nightly ? 9 : early + 2); ++first)
      for (const auto& [name, accident] : accidents)
        for (const int second : {1, 2, 3, kNever}) {
          const bool again = name == "state lost" && first == early;
          if (!nightly && second != kNever && !again) continue;
          begin_world();
          run("state", "a", early);
          save("early");
          run("state", "a", first - early == 0 ? 0 : first);
          accident();
          run("state", "b", second);
          run("state", "b", kNever);
          run("state", "a", kNever);
          note("killed after " + std::to_string(early) + ", then " + std::to_string(first) + ", " + name +
               ", killed after " + std::to_string(second));
          if (mistake_ != Mistake::kNone && !found_.empty()) return;
        }
}

// A second process, with the same state folder or one of its own, begins between any two steps of the first and is
// itself interrupted between any two.
void WorkModelTest::explore_races() {
  const bool nightly = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  for (const char* other : {"state", "twin"})
    for (int first = 0; first <= 9; ++first)
      for (int second = 0; second <= 9; ++second) {
        if (!nightly && first % 3 != 1 && second % 3 != 1) continue;
        begin_world();
        {
          Site one = site("state", "a");
          Site two = site(other, "b");
          one.run(first);
          two.run(second);
          one.run(kNever);
          two.run(kNever);
        }
        run("state", "a", kNever);
        run(other, "b", kNever);
        note(std::string("race in ") + other + " at " + std::to_string(first) + ", " + std::to_string(second));
        if (mistake_ != Mistake::kNone && !found_.empty()) return;
      }
}

TEST_F(WorkModelTest, NoAccidentGivesTwoAnswersForOneCharge) {
  explore_accidents();
  EXPECT_THAT(found_, ::testing::IsEmpty());
  EXPECT_GT(worlds_, 250);
}

TEST_F(WorkModelTest, NoRaceGivesTwoAnswersForOneCharge) {
  explore_races();
  EXPECT_THAT(found_, ::testing::IsEmpty());
  EXPECT_GE(worlds_, 100);
}

TEST_F(WorkModelTest, WithoutAccidentsAStudyIsAnsweredAndClosed) {
  begin_world();
  run("state", "a", kNever);
  EXPECT_EQ(outside_.sent.size(), kAsks);
  EXPECT_EQ((*open().find_work("study"))->state, WorkState::kClosed);
  begin_world();
  for (int i = 1; i <= 12; ++i) run("state", "a", i);  // killed ever later, it still comes to its end
  EXPECT_EQ(outside_.sent.size(), kAsks);
}

// The model would have found them.
class PlantedMistakes : public WorkModelTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(PlantedMistakes, AreFound) {
  mistake_ = GetParam();
  explore_accidents();
  if (found_.empty()) explore_races();
  EXPECT_FALSE(found_.empty());
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistakes,
                         ::testing::Values(Mistake::kStoresBeforeItPays, Mistake::kTrustsItsFolder,
                                           Mistake::kLooksThenPays, Mistake::kSendsBeforeItAdvances));

}  // namespace
}  // namespace eigenveil::test
