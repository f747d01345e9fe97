// SPDX-License-Identifier: Apache-2.0
// Store, pay, answer, resume and end, by the real study of a site, its real ledger and its real folder. Its process is
// killed where it is about to make any one of the calls that change something; the disk is full from any one of them
// on; a second process begins between any two; and in between files are lost, restored, copied or replaced. In every
// world that is reached so: one accept and one answer per number, from one data file, and nothing has left that is not
// charged and known to the ledger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>

#include "tests/support/stopper.hpp"
#include "tests/support/study_lab.hpp"

namespace eigenveil::federation {
namespace {

namespace fs = std::filesystem;
using test::StudyLab;
using wire::v2::Kind;

bool nightly() { return std::getenv("EIGENVEIL_NIGHTLY") != nullptr; }

/// What has left the site, in memory that no disk and no kill takes back.
class Outside {
 public:
  Outside()
      : bytes_(static_cast<char*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside() { ::munmap(bytes_, kSize); }

  void clear() { end() = 0; }
  void put(std::uint32_t number, const std::string& message) {
    const auto size = static_cast<std::uint32_t>(message.size());
    if (sizeof(std::size_t) + end() + 8 + size > kSize) std::abort();
    char* to = bytes_ + sizeof(std::size_t) + end();
    std::memcpy(to, &number, 4);
    std::memcpy(to + 4, &size, 4);
    std::memcpy(to + 8, message.data(), size);
    end() += 8 + size;
  }
  /// By number of the ask; 0 is the accept.
  std::map<std::uint32_t, std::set<std::string>> all() const {
    std::map<std::uint32_t, std::set<std::string>> all;
    for (const char* at = bytes_ + sizeof(std::size_t); at < bytes_ + sizeof(std::size_t) + end();) {
      std::uint32_t number = 0;
      std::uint32_t size = 0;
      std::memcpy(&number, at, 4);
      std::memcpy(&size, at + 4, 4);
      all[number].emplace(at + 8, size);
      at += 8 + size;
    }
    return all;
  }

 private:
  static constexpr std::size_t kSize = std::size_t{1} << 20;
  std::size_t& end() const { return *reinterpret_cast<std::size_t*>(bytes_); }
  char* bytes_;
};

constexpr std::array<const char*, 3> kLabels = {"bound", "recentre", "apply"};
constexpr int kMet = 2;  // of the phases: 1 is opened, 3 and on are answers
constexpr int kAnswered = kMet + static_cast<int>(kLabels.size());
constexpr int kFinished = kAnswered + 1;

class StudyModel : public ::testing::Test {
 protected:
  // Thousands of processes, each durable: in memory, where that takes no time.
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }

  /// An empty world: a ledger with a budget, a data file, a proposal, and no state.
  void begin_world(bool secure, bool strict = false) {
    lab_.emplace(secure ? 2 : 1);
    if (!strict) lab_->forgive();
    lab_->plan("bound", Kind::NORM_COUNTS);
    lab_->plan("recentre", Kind::RECENTER);
    lab_->plan("apply", Kind::APPLY);
    if (secure) lab_->secure();
    others_.clear();
    if (secure) {
      test::need(lab_->open(1));
      others_.push_back(lab_->studies[1]->accept());
      lab_->studies[1].reset();
    }
    for (const auto& [name, pin] : lab_->pins) lab_->among.push_back(name);
    outside_.clear();
    strict_ = strict;
  }
  fs::path root() const { return fs::path(lab_->configs[0].ledger).parent_path(); }
  fs::path state() const { return lab_->state(0); }

  /// A copy of everything of this site, and the world as it was when it was made.
  void save(const fs::path& to) const {
    fs::remove_all(to);
    fs::copy(root(), to, fs::copy_options::recursive);
  }
  void restore(const fs::path& from, const fs::path& what) const {
    const fs::path to = what.is_absolute() ? what : root() / what;
    const fs::path source = from / fs::relative(to, root());
    fs::remove_all(to);
    if (fs::exists(source)) fs::copy(source, to, fs::copy_options::recursive);
  }
  void begin_again(const fs::path& from, const std::map<std::uint32_t, std::set<std::string>>& left) {
    for (const auto& entry : fs::directory_iterator(root())) fs::remove_all(entry);
    fs::copy(from, root(), fs::copy_options::recursive);
    outside_.clear();
    for (const auto& [number, messages] : left)
      for (const std::string& message : messages) outside_.put(number, message);
  }

  /// The site's process, with a coordinator that asks question `a` or `b`, as far as `phase`. 0 if it came there.
  int go(char question, int phase = kFinished, const std::string& twin = "") {
    StudyLab& lab = *lab_;
    lab.configs[0].state += twin;
    if (!lab.open(0).ok()) return 1;
    SiteStudy& study = *lab.studies[0];
    outside_.put(0, study.accept().statement());  // what is signed; a signature has randomness of its own
    if (phase < kMet) return 0;
    wire::v2::Roster roster = lab.roster();
    for (const auto& other : others_) *roster.add_accepts() = other;
    const std::string bytes = canonical_bytes(roster);
    if (!study.meet(bytes).ok()) return 2;
    lab.chain.emplace(lab.proposal_hash(), hash("roster", {lab.proposal_hash(), bytes}));
    for (int i = kMet; i < std::min(phase, kAnswered); ++i) {
      auto ask = lab.ask(kLabels.at(static_cast<std::size_t>(i - kMet)));
      if (question == 'b' && ask.has_exceedance()) ask.mutable_exceedance()->set_grid(0, 0.25);
      if (question == 'b' && ask.has_recenter()) ask.mutable_recenter()->set_mean(0, 0.125);
      if (question == 'b' && ask.has_sum()) ask.mutable_sum()->mutable_apply()->mutable_x()->set_scaled(0, 0);
      const auto stored = lab.send(0, ask);
      if (!stored) return 3;
      std::string left = canonical_bytes(ask) + canonical_bytes(stored->answer);
      for (const Int128 value : test::integers(*stored))
        left.append(reinterpret_cast<const char*>(&value), sizeof value);
      outside_.put(ask.number(), left);
      lab.sent(ask);
      if (!study.move_on().ok()) return 4;
    }
    if (phase == kFinished) study.finish();
    return 0;
  }
  int run(char question, int phase = kFinished, const std::string& twin = "") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(go(question, phase, twin));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// What is wrong with the world as it is; empty if nothing is.
  std::string wrong() const {
    const auto left = outside_.all();
    for (const auto& [number, messages] : left)
      if (messages.size() > 1)
        return number == 0 ? "two accepts for one charge" : "two answers to number " + std::to_string(number);
    if (left.empty()) return "";
    auto ledger = Ledger::open(lab_->configs[0].ledger);
    if (!ledger) return ledger.error().message;
    const auto status = ledger->show("rows");
    if (!status) return status.error().message;
    if (status->frozen) return "";
    if (status->works.size() != 1 || status->reservations.size() != 1) return "not one charge";
    const bool answered = left.rbegin()->first > 0;
    if (status->works[0].step < left.rbegin()->first) return "an answer that the ledger does not know";
    if ((answered || strict_) && status->works[0].refunded) return "what has left was given back";
    return "";
  }
  void check(const std::string& world) {
    ++worlds_;
    if (const std::string what = wrong(); !what.empty()) found_.push_back(world + ": " + what);
  }

  /// What tells this world from others, keys and noise apart.
  std::string outline() const {
    std::ostringstream out;
    if (const auto work = lab_->work(0))
      out << name(work->state) << work->step << work->met.empty() << work->refunded << ";";
    if (!fs::exists(state())) return out.str();
    for (const auto& entry : std::set<fs::path>(fs::directory_iterator(state()), {}))
      out << (entry.extension() == ".tmp" ? fs::path("tmp") : entry.filename()) << fs::file_size(entry) << ";";
    const auto keys = KeyFile(state() / "study.key").load();
    if (keys.ok() && keys->has_value()) out << (*keys)->index << (*keys)->exchange.has_value();
    out << outside_.all().size();
    return out.str();
  }

  /// A process that is killed at every one of its calls, from a world in which one came as far as `phase`.
  void kill_everywhere(int phase, bool secure);
  void fill_the_disk_everywhere(int phase);
  void race_everywhere(const std::string& twin, bool copied);

  std::optional<StudyLab> lab_;
  std::vector<wire::v2::Accept> others_;
  Outside outside_;
  bool strict_ = false;
  int worlds_ = 0;
  int stops_ = 0;
  std::set<std::string> seen_;
  std::vector<std::string> found_;
  test::TempDir copies_;
};

void StudyModel::kill_everywhere(int phase, bool secure) {
  const fs::path early = copies_.file("early");
  const fs::path killed = copies_.file("killed");
  const std::vector<std::pair<std::string, std::function<void()>>> accidents = {
      {"state lost", [&] { fs::remove_all(state()); }},
      {"state restored", [&] { restore(early, state()); }},
      {"keys lost", [&] { fs::remove(state() / "study.key"); }},
      {"keys restored", [&] { restore(early, state() / "study.key"); }},
      {"log lost", [&] { fs::remove(state() / "answers.bin"); }},
      {"log restored", [&] { restore(early, state() / "answers.bin"); }},
      {"roster lost", [&] { fs::remove(state() / "roster.bin"); }},
      {"accept lost", [&] { fs::remove(state() / "accept.bin"); }},
      {"ledger restored", [&] { restore(early, lab_->configs[0].ledger); }},
      {"ledger and state restored",
       [&] {
         restore(early, lab_->configs[0].ledger);
         restore(early, state());
       }},
      {"data replaced", [&] { std::ofstream(lab_->data(0), std::ios::app) << "1,1,A\n"; }},
      {"early state copied and used there", [&] {
         if (fs::exists(early / fs::path(lab_->configs[0].state).filename()))
           fs::copy(early / fs::path(lab_->configs[0].state).filename(), lab_->configs[0].state + "-twin",
                    fs::copy_options::recursive);
         run('b', kAnswered, "-twin");
       }}};
  for (stops_ = 0;; stops_ += secure && !nightly() ? 5 : 1) {
    begin_world(secure);
    ASSERT_TRUE(phase == 0 || run('a', phase) == 0);
    save(early);
    const bool came = test::killed_at(stops_, [&] { return go('a'); }) == -SIGKILL;
    const std::string world = "from phase " + std::to_string(phase) + ", killed at call " + std::to_string(stops_);
    check(world);
    save(killed);
    const auto left = outside_.all();
    const bool seen = !seen_.insert(outline()).second;
    for (const auto& [name, accident] : accidents) {
      if (seen && !nightly()) break;
      accident();
      run('b');
      run('a');
      check(world + ", " + name);
      begin_again(killed, left);
    }
    if (seen && !nightly() && came) continue;
    // Whoever only was killed goes on, unless it was about to end.
    const bool over = left.size() == 1 + kLabels.size() && !KeyFile(state() / "study.key").load()->has_value();
    const int code = run('a');
    check(world + ", and gone on");
    if (!over &&
        (code != 0 || outside_.all().size() != 1 + kLabels.size() || lab_->work(0)->state != WorkState::kClosed))
      found_.push_back(world + ": it does not go on (" + std::to_string(code) + ")");
    if (!came || found_.size() > 5) return;
  }
}

// The disk is full from a call on, and has room again for the next process: with its state, or after that was lost.
void StudyModel::fill_the_disk_everywhere(int phase) {
#ifdef __x86_64__
  const fs::path full = copies_.file("full");
  for (stops_ = 0;; stops_ += nightly() ? 1 : 3) {
    begin_world(false);
    ASSERT_TRUE(phase == 0 || run('a', phase) == 0);
    bool came = false;
    {
      test::Stopper process([&] { return go('a'); });
      came = process.hold_at(stops_);
      if (came) process.finish_without_room();
    }
    const std::string world = "from phase " + std::to_string(phase) + ", disk full from call " + std::to_string(stops_);
    check(world);
    save(full);
    const auto left = outside_.all();
    for (const bool lost : {false, true}) {
      if (lost) fs::remove_all(state());
      run('b');
      run('a');
      check(world + (lost ? ", state lost" : ", and gone on"));
      begin_again(full, left);
    }
    if (!came || found_.size() > 5) return;
  }
#else
  (void)phase;
#endif
}

// One process is held where it is about to make a call; another runs, in the same folder, in one of its own, or in a
// copy; then the first goes on.
void StudyModel::race_everywhere(const std::string& twin, bool copied) {
  for (stops_ = 0;; stops_ += nightly() ? 1 : !twin.empty() && !copied ? 3 : 9) {
    begin_world(false);
    bool came = false;
    {
      test::Stopper first([&] { return go('a', kAnswered); });
      came = first.hold_at(stops_);
      if (copied && fs::exists(lab_->configs[0].state))
        fs::copy(lab_->configs[0].state, lab_->configs[0].state + twin, fs::copy_options::recursive);
      const pid_t second = ::fork();
      if (second == 0) ::_exit(go('b', kAnswered, twin));
      // Who waits for a lock that the first holds does so until that goes on.
      int status = 0;
      bool ended = false;
      for (int wait = 0; wait < 60 && !ended; ++wait) {
        ended = ::waitpid(second, &status, WNOHANG) == second;
        if (!ended) ::usleep(1000);
      }
      first.finish();
      if (!ended) ::waitpid(second, &status, 0);
    }
    run('b', kAnswered, twin);
    run('a');
    check("a race in '" + twin + (copied ? "', a copy" : "'") + " at call " + std::to_string(stops_));
    if (!came || found_.size() > 5) return;
  }
}

TEST_F(StudyModel, KilledAtAnyCallWhateverIsLostOrRestoredThereIsOneAnswerForOneCharge) {
  for (const int phase : nightly() ? std::vector<int>{0, 1, 2, 3, 4, 5} : std::vector<int>{0}) {
    kill_everywhere(phase, false);
    EXPECT_GT(stops_, 20);
  }
  EXPECT_THAT(found_, ::testing::IsEmpty());
  std::cout << worlds_ << " worlds\n";
}

TEST_F(StudyModel, KilledAtAnyCallOfAMaskedStudyItIsTheSame) {
  for (const int phase : nightly() ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{kMet})
    kill_everywhere(phase, true);
  EXPECT_THAT(found_, ::testing::IsEmpty());
  std::cout << worlds_ << " worlds\n";
}

TEST_F(StudyModel, WithADiskThatIsFullFromAnyCallOnThereIsOneAnswerForOneCharge) {
  for (const int phase : {0, kMet}) fill_the_disk_everywhere(phase);
  EXPECT_THAT(found_, ::testing::IsEmpty());
  std::cout << worlds_ << " worlds\n";
}

TEST_F(StudyModel, ASecondProcessThatBeginsAnywhereGivesNoSecondAnswer) {
  race_everywhere("", false);
  race_everywhere("-twin", false);
  race_everywhere("-twin", true);
  EXPECT_THAT(found_, ::testing::IsEmpty());
  std::cout << worlds_ << " worlds\n";
}

// Where rows can refuse, that they did not is paid for whenever anybody heard it.
TEST_F(StudyModel, WhereRowsCanRefuseAnAcceptThatLeftIsPaidFor) {
  for (stops_ = 0;; stops_ += nightly() ? 1 : 3) {
    begin_world(false, true);
    const bool came = test::killed_at(stops_, [&] { return go('a', 1); }) == -SIGKILL;
    const std::string world = "killed at call " + std::to_string(stops_);
    check(world);
    outside_.clear();
    std::ofstream(lab_->data(0), std::ios::app) << "1,,A\n";  // what reading it says is the bit
    run('a', 1);
    if (lab_->work(0) && lab_->work(0)->refunded) found_.push_back(world + ": what a row decided was given back");
    if (!came || found_.size() > 5) break;
  }
  EXPECT_THAT(found_, ::testing::IsEmpty());
}

}  // namespace
}  // namespace eigenveil::federation
