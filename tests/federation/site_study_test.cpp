// SPDX-License-Identifier: Apache-2.0
// A study at a site: what is durable before what, what a restart finds, and what can never come back.
#include "eigenveil/federation/site_study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "eigenveil/federation/keys.hpp"
#include "eigenveil/federation/stored.hpp"
#include "tests/support/study_lab.hpp"

namespace eigenveil::federation {
namespace {

namespace fs = std::filesystem;
using test::integers;
using test::StudyLab;
using ::testing::HasSubstr;
using wire::v2::Kind;

/// A site with a plan of five asks, all answered by `go`.
class Study : public ::testing::Test {
 protected:
  Study() : lab(1) {
    lab.forgive();
    lab.plan("gram", Kind::GRAM);
    lab.plan("bound", Kind::NORM_COUNTS);
    lab.plan("recentre", Kind::RECENTER);
    lab.plan("apply", Kind::APPLY, StudyLab::kMu, 2);
  }
  /// Asks the next label; the answer is in `answers` from then on.
  void go(const std::string& label) {
    const auto ask = lab.ask(label);
    const auto stored = lab.send(0, ask);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    lab.sent(ask);
    asked.push_back(ask);
    answers.push_back(integers(*stored));
  }
  /// Everything asked so far has the same bytes again, or is refused for ever.
  void expect_same_or_lost() {
    const auto opened = lab.open(0);
    if (!opened) {
      EXPECT_TRUE(is_final(lab.work(0)->state) || !lab.open(0).ok()) << opened.error().message;
      return;
    }
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto again = lab.send(0, asked[i]);
      ASSERT_TRUE(again.ok()) << i << ": " << again.error().message;
      EXPECT_EQ(integers(*again), answers[i]) << i;
    }
  }
  StudyLab lab;
  std::vector<wire::v2::Ask> asked;
  std::vector<std::vector<Int128>> answers;
};

TEST_F(Study, GoesThroughItsStatesAndTheLedgerKnowsThem) {
  EXPECT_FALSE(lab.work(0).has_value());
  ASSERT_TRUE(lab.open_all().ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kReserved);
  EXPECT_THAT(lab.said, HasSubstr("gram"));
  ASSERT_TRUE(lab.begin().ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kMet);
  for (const char* label : {"gram", "bound", "recentre", "apply", "apply"}) {
    go(label);
    EXPECT_EQ(lab.work(0)->state, WorkState::kAnswering);
    EXPECT_EQ(lab.work(0)->step, asked.size());
    EXPECT_EQ(lab.work(0)->head, hex(lab.chain->head()));
  }
  const auto beyond = lab.send(0, lab.ask("apply"));
  EXPECT_FALSE(beyond.ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kEnded);
  EXPECT_EQ(lab.charges(0), 1U);
}

// The exact sum, plus the noise of the plan's mu from the key on disk: nothing else leaves, to the last bit.
TEST_F(Study, AnswersAreTheExactSumAndTheNoiseOfThePlan) {
  ASSERT_TRUE(lab.begin().ok());
  for (const char* label : {"gram", "bound", "recentre", "apply", "apply"}) {
    const auto ask = lab.ask(label);
    const auto held = lab.rows(0, asked);
    std::optional<test::Expected> expected;
    if (!ask.has_recenter()) expected = lab.expected(0, ask, StudyLab::kMu, held);
    go(label);
    if (!expected) continue;
    ASSERT_EQ(answers.back().size(), expected->sum.values.size());
    for (std::size_t i = 0; i < answers.back().size(); ++i)
      EXPECT_EQ(answers.back()[i], (expected->sum.values[i] << expected->scale.shift) + expected->noise[i]) << label;
  }
}

TEST_F(Study, TheSameAskGetsTheSameBytesNowAndAfterARestartAtEveryStep) {
  ASSERT_TRUE(lab.open_all().ok());
  lab.studies[0].reset();
  ASSERT_TRUE(lab.begin().ok());
  for (const char* label : {"gram", "bound", "recentre", "apply", "apply"}) {
    go(label);
    expect_same_or_lost();
    ASSERT_TRUE(lab.studies[0]);
  }
  EXPECT_EQ(lab.charges(0), 1U);
}

// Each file of the state alone, and all of them together: gone, or as it was at every earlier time. No number ever gets
// two different answers, and no further charge.
class Restored : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Restored, FileGivesTheSameAnswersOrNone) {
  const std::string time = std::get<0>(GetParam());
  const std::string file = std::get<1>(GetParam());
  StudyLab lab(1);
  lab.plan("gram", Kind::GRAM);
  lab.plan("apply", Kind::APPLY, StudyLab::kMu, 3);
  test::TempDir copies;
  const auto save = [&](const std::string& name) {
    fs::copy(lab.state(0), copies.file(name), fs::copy_options::recursive);
  };
  ASSERT_TRUE(lab.open_all().ok());
  save("reserved");
  ASSERT_TRUE(lab.begin().ok());
  save("met");
  std::vector<wire::v2::Ask> asked;
  std::vector<std::vector<Int128>> answers;
  for (const char* label : {"gram", "apply", "apply"}) {
    asked.push_back(lab.ask(label));
    answers.push_back(integers(*lab.send(0, asked.back())));
    lab.sent(asked.back());
    save(std::to_string(asked.size()));
  }
  lab.studies[0].reset();
  const bool all = file == "all";
  const auto to = all ? fs::path(lab.state(0)) : fs::path(lab.state(0)) / file;
  const auto from = all ? fs::path(copies.file(time)) : fs::path(copies.file(time)) / file;
  fs::remove_all(to);
  if (time != "gone" && fs::exists(from)) fs::copy(from, to, fs::copy_options::recursive);
  const auto opened = lab.open(0);
  for (std::size_t i = 0; opened && i < asked.size(); ++i) {
    const auto again = lab.send(0, asked[i]);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(integers(*again), answers[i]) << i;
  }
  if (!opened) {
    // Whatever is brought back, another ask is not answered either.
    lab.studies[0].reset();
    fs::remove_all(lab.state(0));
    fs::copy(copies.file("3"), lab.state(0), fs::copy_options::recursive);
    EXPECT_TRUE(!is_final(lab.work(0)->state) || !lab.open(0).ok());
  }
  EXPECT_EQ(lab.charges(0), 1U);
}

INSTANTIATE_TEST_SUITE_P(Study, Restored,
                         ::testing::Combine(::testing::Values("gone", "reserved", "met", "1", "2"),
                                            ::testing::Values("study.key", "answers.bin", "roster.bin", "accept.bin",
                                                              "all")));

TEST_F(Study, TheFolderThatIsGoneIsLostForEver) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  lab.studies[0].reset();
  fs::remove_all(lab.configs[0].state);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(lab.open(0).ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kLost);
  EXPECT_EQ(lab.charges(0), 1U);
}

// Before anybody is met nothing but the keys tells a folder from another: the charge is for those that it was made
// with.
class OtherKeys : public ::testing::TestWithParam<const char*> {};

TEST_P(OtherKeys, AreNotThoseOfTheCharge) {
  const std::string which = GetParam();
  StudyLab lab(1);
  lab.forgive();
  lab.plan("gram", Kind::GRAM);
  ASSERT_TRUE(lab.open_all().ok());
  lab.studies[0].reset();
  ASSERT_TRUE(lab.open(0).ok()) << "its own";
  lab.studies[0].reset();
  const KeyFile file(lab.state(0) + "/study.key");
  StudyKeys keys = **file.load(), others = StudyKeys::draw();
  if (which == "noise") keys.noise = std::move(others.noise);
  if (which == "mask") keys.exchange = std::move(others.exchange);
  if (which == "all")
    fs::remove_all(lab.configs[0].state);
  else
    ASSERT_TRUE(file.save(keys).ok());
  EXPECT_FALSE(lab.open(0).ok());
  EXPECT_EQ(lab.charges(0), 1U);
}

INSTANTIATE_TEST_SUITE_P(Study, OtherKeys, ::testing::Values("noise", "mask", "all"));

// A state folder that cannot be written is found before the charge, and room that comes later finds the same study.
TEST_F(Study, NothingIsChargedThatCouldNotBeStored) {
  lab.configs[0].state = "/proc/nowhere";
  EXPECT_FALSE(lab.open(0).ok());
  EXPECT_FALSE(lab.work(0).has_value());
  EXPECT_EQ(lab.charges(0), 0U);
}

// Another process has just begun the same study and has no keys yet: nothing of its folder is taken away.
TEST_F(Study, WhoFindsTheFolderInUseTakesNothingAway) {
  const std::string folder = lab.state(0);
  fs::create_directories(folder);
  const auto others = AnswerLog::open(folder + "/answers.bin");
  ASSERT_TRUE(others.ok());
  EXPECT_FALSE(lab.open(0).ok());
  EXPECT_TRUE(fs::exists(folder + "/answers.bin"));
  EXPECT_FALSE(lab.work(0).has_value());
}

TEST_F(Study, TwoFoldersWithOneLedgerAreNotTwoStudies) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  const auto first = lab.configs[0].state;
  auto study = std::move(lab.studies[0]);
  lab.configs[0].state += "-other";
  EXPECT_FALSE(lab.open(0).ok()) << "while the first holds it";
  study.reset();
  EXPECT_FALSE(lab.open(0).ok()) << "and afterwards";
  lab.configs[0].state = first;
  EXPECT_FALSE(lab.open(0).ok() && is_final(lab.work(0)->state));
  EXPECT_EQ(lab.charges(0), 1U);
}

TEST_F(Study, ADataFileThatChangedEndsTheStudy) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  lab.studies[0].reset();
  {
    std::ofstream out(lab.data(0), std::ios::app);
    out << "1,1,A\n";
  }
  EXPECT_FALSE(lab.open(0).ok());
  lab.write_rows(0);
  EXPECT_FALSE(lab.open(0).ok()) << "lost is lost";
  EXPECT_EQ(lab.work(0)->state, WorkState::kLost);
}

/// Changes the data file when its rows are about to be read: after its hash was taken.
class Meddler final : public Observer {
 public:
  explicit Meddler(std::string data) : data_(std::move(data)) {}
  void step(std::string_view name) override {
    if (name == "reading rows") std::ofstream(data_, std::ios::app) << "1,1,A\n";
  }

 private:
  std::string data_;
};

TEST_F(Study, ADataFileThatChangesWhileItIsReadIsNoticed) {
  const auto read = Proposed::read(lab.signed_by_coordinator(lab.proposal), lab.configs[0]);
  ASSERT_TRUE(read.ok());
  Meddler meddler(lab.data(0));
  const auto yes = [](const std::string&) { return true; };
  const auto opened = SiteStudy::open(lab.configs[0], *read, yes, meddler);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("the file changed while it was read"));
  EXPECT_TRUE(is_final(lab.work(0)->state));
  EXPECT_FALSE(lab.work(0)->refunded) << "that rows cannot be used says something about them";
}

// Rows are read once: what becomes of the file afterwards changes no answer of this process.
TEST_F(Study, ADataFileThatChangesBetweenAsksChangesNoAnswer) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  const auto ask = lab.ask("bound");
  const auto expected = lab.expected(0, ask, StudyLab::kMu, lab.rows(0, asked));
  std::ofstream(lab.data(0), std::ios::trunc) << "a,b,label\n4,4,A\n";
  go("bound");
  for (std::size_t i = 0; i < answers.back().size(); ++i)
    EXPECT_EQ(answers.back()[i], (expected.sum.values[i] << expected.scale.shift) + expected.noise[i]);
}

// Number, label, kind and set are right; what was asked before is told differently.
TEST_F(Study, AnAskThatContinuesAnotherHistoryIsRefused) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  auto ask = lab.ask("bound");
  ask.set_prev(Chain("another", "history").head());
  const auto refused = lab.send(0, ask);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("other things before than it says now"));
  EXPECT_EQ(lab.work(0)->step, 1U);
  EXPECT_EQ(lab.work(0)->state, WorkState::kEnded);
}

// A number that was answered is answered no other way, now or after a restart.
TEST_F(Study, AnAnsweredNumberWithOtherParametersIsRefused) {
  for (const bool restarted : {false, true}) {
    lab.proposal.set_study(draw_study());
    asked.clear();
    ASSERT_TRUE(lab.begin().ok());
    go("gram");
    go("bound");
    auto ask = asked.back();
    ask.mutable_exceedance()->set_grid(0, 0.25);
    if (restarted) {
      lab.studies[0].reset();
      ASSERT_TRUE(lab.open(0).ok());
    }
    const auto refused = lab.send(0, ask);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("repeats an ask with other parameters"));
    EXPECT_EQ(lab.work(0)->state, WorkState::kEnded);
  }
}

TEST_F(Study, AUnitThatTheBudgetDoesNotCountIsRefusedBeforeAnybodyIsAsked) {
  lab.proposal.set_unit("visit");
  const auto refused = lab.open(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("neither a row nor a person"));
  EXPECT_TRUE(lab.said.empty());
  EXPECT_EQ(lab.charges(0), 0U);
}

TEST_F(Study, KeysAreTheOwnersAloneAndNoFileHasThemAfterTheEnd) {
  ASSERT_TRUE(lab.begin().ok());
  const std::string path = lab.state(0) + "/study.key";
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  go("gram");
  const StudyKeys keys = **KeyFile(path).load();
  const std::vector<std::string> secrets = {std::string(keys.noise.view()), std::string(keys.data.view())};
  lab.studies[0]->finish();
  EXPECT_EQ(lab.work(0)->state, WorkState::kClosed);
  EXPECT_FALSE(fs::exists(path));
  for (const auto& entry : fs::recursive_directory_iterator(lab.configs[0].state)) {
    if (!entry.is_regular_file()) continue;
    for (const std::string& secret : secrets)
      EXPECT_EQ(test::read_file(entry.path().string()).find(secret), std::string::npos) << entry.path();
  }
}

TEST_F(Study, AStudyThatWasNeverAskedIsGivenBackAndAnAnsweredOneIsNot) {
  ASSERT_TRUE(lab.begin().ok());
  lab.studies[0]->finish();
  EXPECT_TRUE(lab.work(0)->refunded);
  lab.proposal.set_study(draw_study());
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  lab.studies[0]->finish();
  EXPECT_FALSE(lab.work(0)->refunded);
}

// Where a bad row makes the site refuse, taking part says that there is none: a coordinator that spoils the study then
// does not get the charge back.
TEST_F(Study, WhereARowCanRefuseTakingPartIsNotFreeEither) {
  const auto by_value = [](StudyLab& strict) {
    strict.configs[0].missing = MissingPolicy::kError;
    strict.proposal.mutable_rows()->set_zero_missing(false);
  };
  const auto by_class = [](StudyLab& strict) {
    strict.configs[0].drop_unlisted = false;
    strict.proposal.mutable_rows()->mutable_class_column()->set_drop_unlisted(false);
  };
  const auto by_id = [](StudyLab& strict) {  // a row that is nobody's
    strict.configs[0].person = "label";
    strict.configs[0].dataset = "people";
    strict.proposal.set_unit("person");
    strict.proposal.mutable_people()->set_least_rows(1);
    strict.proposal.mutable_rows()->clear_class_column();
    test::need(Ledger::open(strict.configs[0].ledger)->create({.name = "people", .limit = {}, .person = "label"}));
  };
  for (const std::function<void(StudyLab&)>& refuse : {std::function<void(StudyLab&)>(by_value), {by_class}, {by_id}}) {
    StudyLab strict(1);
    strict.forgive();
    strict.plan("gram", Kind::GRAM);
    refuse(strict);
    const auto opened = strict.open(0);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_FALSE(strict.studies[0]->meet("no roster").ok());
    EXPECT_TRUE(is_final(strict.work(0)->state));
    EXPECT_FALSE(strict.work(0)->refunded);
    strict.proposal.set_study(draw_study());
    ASSERT_TRUE(strict.begin().ok()) << "and it goes on as others do";
    EXPECT_TRUE(strict.send(0, strict.ask("gram")).ok());
  }
}

// Files whose names begin with an underscore are not read: the same files under other names are other rows, and the
// same noise on both would give away the difference.
TEST_F(Study, AFolderWhoseFilesGotOtherNamesEndsTheStudy) {
  test::TempDir folder;
  fs::copy(lab.data(0), folder.file("p1.csv"));
  fs::copy(lab.data(0), folder.file("p2.csv"));
  lab.configs[0].data = folder.file(".");
  ASSERT_TRUE(lab.begin().ok());
  lab.studies[0].reset();
  fs::rename(folder.file("p2.csv"), folder.file("_p2.csv"));
  EXPECT_FALSE(lab.open(0).ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kLost);
}

TEST_F(Study, WhatWasNotChargedLeavesNothingBehind) {
  const std::string data = lab.configs[0].data;
  for (const bool unpaid : {true, false}) {
    (unpaid ? lab.configs[0].dataset : lab.configs[0].data) = "another";
    EXPECT_FALSE(lab.open(0).ok());
    EXPECT_FALSE(fs::exists(lab.state(0)));
    lab.configs[0].dataset = "rows";
    lab.configs[0].data = data;
  }
  EXPECT_TRUE(lab.begin().ok());
}

TEST_F(Study, KeysGoWhenTheTimeIsUpThoughNobodyAsks) {
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(6);
  lab.proposal.set_not_after(std::chrono::system_clock::to_time_t(end));
  ASSERT_TRUE(lab.begin().ok());
  lab.studies[0].reset();
  erase_ended_keys(lab.configs[0]);
  EXPECT_TRUE(fs::exists(lab.state(0) + "/study.key"));
  std::this_thread::sleep_until(end + std::chrono::seconds(1));
  erase_ended_keys(lab.configs[0]);
  EXPECT_FALSE(fs::exists(lab.state(0) + "/study.key"));
  EXPECT_EQ(lab.work(0)->state, WorkState::kExpired);
}

// A person who reads for long says yes to what has expired meanwhile.
TEST_F(Study, AYesThatComesAfterTheProposalsTimeIsNone) {
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(2);
  lab.proposal.set_not_after(std::chrono::system_clock::to_time_t(end));
  lab.while_reading = [&] { std::this_thread::sleep_until(end + std::chrono::milliseconds(1100)); };
  const auto refused = lab.open(0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("it has expired"));
  EXPECT_FALSE(lab.said.empty()) << "it was shown in time";
  EXPECT_EQ(lab.charges(0), 0U);
  EXPECT_FALSE(fs::exists(lab.state(0)));
}

// Nor is it a yes to a budget that was spent by somebody else meanwhile.
TEST_F(Study, ABudgetThatIsSpentWhileAPersonReadsIsNotSpentTwice) {
  lab.configs[0].dataset = "small";
  test::need(Ledger::open(lab.configs[0].ledger)
                 ->create({.name = "small", .limit = DatasetBudget::Limit{*Epsilon::of(900), *Delta::of(1e-6)}}));
  lab.while_reading = [&] {
    auto ledger = Ledger::open(lab.configs[0].ledger);
    const auto other =
        ledger->reserve("small", PrivacyPlan(Adjacency::kReplaceOne, {{"g", GaussianEvent{37}}}), "other");
    ASSERT_TRUE(other.ok()) << other.error().message;
    ASSERT_TRUE((*other)->begin_answering().ok());
  };
  for (auto& planned : *lab.proposal.mutable_plan())
    if (planned.mu() > 0) planned.set_mu(10);
  lab.proposal.set_spare_mu(10);
  EXPECT_FALSE(lab.open(0).ok());
  EXPECT_FALSE(lab.said.empty());
  EXPECT_FALSE(lab.work(0).has_value());
  lab.while_reading = nullptr;
}

TEST_F(Study, ItsTimeRunsOut) {
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(6);
  lab.proposal.set_not_after(std::chrono::system_clock::to_time_t(end));
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  std::this_thread::sleep_until(end + std::chrono::milliseconds(1100));
  EXPECT_FALSE(lab.send(0, lab.ask("bound")).ok());
  EXPECT_EQ(lab.work(0)->state, WorkState::kExpired);
  EXPECT_FALSE(lab.open(0).ok());
}

// Certificates are looked at when sites are introduced, and not again: who was met stays, also after a restart.
TEST(StudyOfPeers, GoesOnAfterTheCertificateOfOneHasExpired) {
  StudyLab lab(3);
  lab.forgive();
  lab.plan("gram", Kind::GRAM);
  lab.plan("apply", Kind::APPLY);
  lab.secure();
  test::TempDir copy;
  const std::string folder = copy.file("ca");
  fs::copy(test::Certificates::shared().folder(), folder, fs::copy_options::recursive);
  fs::remove(folder + "/site-1.crt");
  const auto end = std::chrono::system_clock::now() + std::chrono::seconds(12);
  const auto issued = sign_request(folder, test::read_file(folder + "/site-1.csr"), Role::kSite, {.until = 12});
  ASSERT_TRUE(issued.ok()) << issued.error().message;
  lab.configs[1].identity = test::identity_of(folder, "site-1", Role::kSite);
  lab.configs[1].identity.party.not_after += 1'000'000;  // it takes part all the same
  const auto begun = lab.begin();
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  const auto gram = lab.ask("gram");
  ASSERT_TRUE(lab.send(0, gram).ok());
  lab.sent(gram);
  const std::string met = canonical_bytes(lab.roster());
  std::this_thread::sleep_until(end + std::chrono::seconds(2));
  lab.studies[0].reset();
  ASSERT_TRUE(lab.open(0).ok());
  EXPECT_TRUE(lab.studies[0]->meet(met).ok());
  EXPECT_TRUE(lab.send(0, lab.ask("apply")).ok());
  // In another study it is met no more.
  lab.proposal.set_study(draw_study());
  ASSERT_TRUE(lab.open_all().ok());
  const auto late = lab.studies[0]->meet(canonical_bytes(lab.roster()));
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, HasSubstr("expired"));
}

// A copy of a whole site, ledger and all, that is asked something else: noise of its own, and the same for the same
// ask.
TEST_F(Study, AClonedSiteHasTheSameNoiseForTheSameAskAndOtherNoiseForAnother) {
  ASSERT_TRUE(lab.begin().ok());
  go("gram");
  lab.studies[0].reset();
  test::TempDir clone;
  const auto root = fs::path(lab.configs[0].ledger).parent_path();
  fs::copy(root, clone.file("site"), fs::copy_options::recursive);
  const auto answer = [&](const SiteConfig& config, std::int32_t along) {
    const SiteConfig kept = lab.configs[0];
    lab.configs[0] = config;
    EXPECT_TRUE(lab.open(0).ok());
    auto ask = lab.ask("bound");
    ask.mutable_exceedance()->set_grid(0, 0.5 + 0.001 * along);
    const auto expected = lab.expected(0, ask, StudyLab::kMu, lab.rows(0));
    const auto values = integers(*lab.send(0, ask));
    lab.studies[0].reset();
    lab.configs[0] = kept;
    return std::pair{values, expected.noise};
  };
  SiteConfig other = lab.configs[0];
  other.ledger = clone.file("site/" + fs::path(other.ledger).filename().string());
  other.state = clone.file("site/" + fs::path(other.state).filename().string());
  test::TempDir third;
  fs::copy(clone.file("site"), third.file("site"), fs::copy_options::recursive);
  SiteConfig last = other;
  last.ledger = third.file("site/" + fs::path(other.ledger).filename().string());
  last.state = third.file("site/" + fs::path(other.state).filename().string());
  const auto here = answer(lab.configs[0], 0);
  const auto same = answer(other, 0);
  const auto differs = answer(last, 1);
  EXPECT_EQ(here.first, same.first);
  for (std::size_t i = 0; i < here.second.size(); ++i) EXPECT_NE(here.second[i], differs.second[i]);
}

}  // namespace
}  // namespace eigenveil::federation
