// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/work.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const WorkFacts kFacts{{{"proposal", "p1"}, {"data", std::string("d\0\xff", 3)}}};

class WorkTest : public LedgerTest {
 protected:
  WorkTest() { EXPECT_TRUE(open().create(budget("d", 1, 1e-6)).ok()); }

  Result<Begun> begin(const std::string& key = "study 1", const WorkFacts& facts = kFacts,
                      const PrivacyPlan& plan = gaussian(0.1)) const {
    return open().begin_work("d", plan, "a study", key, facts);
  }
  WorkRecord record(const std::string& key = "study 1") const { return **open().find_work(key); }
  DatasetStatus status() const { return *open().show("d"); }
};

TEST_F(WorkTest, IsChargedOnceAndGoesOnWhereItWas) {
  const auto before = *open().generation();
  {
    auto begun = begin();
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    EXPECT_TRUE(begun->fresh);
    EXPECT_EQ(begun->work->record().state, WorkState::kReserved);
    EXPECT_EQ(begun->work->record().generation, before + 1);
    EXPECT_TRUE(begun->work->meet("roster").ok());
    EXPECT_TRUE(begun->work->advance(1, "h1").ok());
    EXPECT_TRUE(begun->work->advance(2, std::string("h\0002", 3)).ok());
  }
  auto again = begin();
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(again->fresh);
  EXPECT_EQ(again->work->record().state, WorkState::kAnswering);
  EXPECT_EQ(again->work->record().step, 2U);
  EXPECT_EQ(again->work->record().head, std::string("h\0002", 3));
  EXPECT_EQ(again->work->record().met, "roster");
  EXPECT_EQ(again->work->record().pinned, kFacts.pinned);
  EXPECT_EQ(again->work->plan().events, gaussian(0.1).events);
  EXPECT_EQ(status().reservations.size(), 1U);
  EXPECT_EQ(status().works.size(), 1U);
}

TEST_F(WorkTest, OneChargeIsNeverHandedToTwoHoldersWhoLiveAtOnce) {
  auto begun = begin();
  ASSERT_TRUE(begun.ok());
  const auto second = begin();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("'study 1'"), HasSubstr("another process")));
  EXPECT_EQ(in_child([&] { return begin().ok() ? 1 : 0; }), 0);
  EXPECT_TRUE(begun->work->advance(1, "h1").ok()) << "being asked for by others does it no harm";
  begun->work.reset();
  EXPECT_EQ(in_child([&] { return begin().ok() ? 0 : 1; }), 0);
  EXPECT_TRUE(begin().ok()) << "a process that ended holds nothing";
}

TEST_F(WorkTest, AnyOtherFactPlanDataSetOrExpiryIsLostForEver) {
  ASSERT_TRUE(open().create(budget("e", 1, 1e-6)).ok());
  WorkFacts other = kFacts, less, more = kFacts;
  other.pinned["data"] = "d";
  less.pinned["proposal"] = "p1";
  more.pinned["x"] = "";
  PrivacyPlan model = gaussian(0.1);
  model.model_based = true;
  const auto later = std::chrono::system_clock::now() + std::chrono::hours(1);
  int number = 0;
  const auto lost = [&](const std::string& what, const std::function<Result<Begun>(const std::string&)>& attempt) {
    const std::string key = "study " + std::to_string(++number);
    ASSERT_TRUE(begin(key, kFacts, gaussian(0.01)).ok());
    const auto refused = attempt(key);
    ASSERT_FALSE(refused.ok()) << what;
    EXPECT_EQ(refused.error().code, ErrorCode::kBudgetRefused);
    EXPECT_THAT(refused.error().message, HasSubstr("another " + what));
    EXPECT_EQ(record(key).state, WorkState::kLost);
    EXPECT_FALSE(record(key).refunded);
    EXPECT_FALSE(begin(key, kFacts, gaussian(0.01)).ok()) << "lost is lost";
  };
  lost("data", [&](const auto& key) { return begin(key, other, gaussian(0.01)); });
  lost("data", [&](const auto& key) { return begin(key, less, gaussian(0.01)); });
  lost("number of pinned facts", [&](const auto& key) { return begin(key, more, gaussian(0.01)); });
  lost("plan", [&](const auto& key) { return begin(key, kFacts, gaussian(0.02)); });
  lost("data set", [&](const auto& key) { return open().begin_work("e", gaussian(0.01), "", key, kFacts); });
  lost("time of expiry",
       [&](const auto& key) { return open().begin_work("d", gaussian(0.01), "", key, kFacts, later); });
  EXPECT_EQ(open().show("e")->reservations.size(), 0U);
}

TEST_F(WorkTest, StepsFollowOneAnotherAndAStepHasOneHead) {
  auto begun = begin();
  Work& work = *begun->work;
  EXPECT_FALSE(work.advance(0, "").ok());
  EXPECT_FALSE(work.advance(2, "h2").ok());
  EXPECT_TRUE(work.meet("roster").ok());
  EXPECT_TRUE(work.meet("roster").ok());
  EXPECT_FALSE(work.meet("another").ok());
  EXPECT_TRUE(work.advance(1, "h1").ok());
  EXPECT_TRUE(work.advance(1, "h1").ok());
  EXPECT_FALSE(work.advance(1, "other").ok());
  EXPECT_FALSE(work.advance(3, "h3").ok());
  EXPECT_TRUE(work.meet("roster").ok());
  EXPECT_FALSE(work.meet("another").ok());
  EXPECT_TRUE(work.advance(2, "h2").ok());
  EXPECT_FALSE(work.advance(1, "h1").ok());
  EXPECT_EQ(record().step, 2U);
  EXPECT_EQ(record().head, "h2");
}

TEST_F(WorkTest, AnEndIsFinalAndGivesBackOnlyWhatNeverAnswered) {
  for (const WorkState end : {WorkState::kClosed, WorkState::kEnded, WorkState::kExpired, WorkState::kLost})
    for (const bool answered : {false, true}) {
      const std::string key = std::string(name(end)) + (answered ? " answered" : "");
      auto begun = begin(key, kFacts, gaussian(0.01));
      ASSERT_TRUE(begun.ok()) << begun.error().message;
      EXPECT_TRUE(begun->work->meet("r").ok());
      if (answered) {
        EXPECT_TRUE(begun->work->advance(1, "h1").ok());
      }
      EXPECT_FALSE(begun->work->close(WorkState::kMet).ok());
      EXPECT_TRUE(begun->work->close(end).ok());
      EXPECT_FALSE(begun->work->advance(answered ? 2 : 1, "h").ok());
      EXPECT_FALSE(begun->work->close(WorkState::kClosed).ok());
      EXPECT_FALSE(begun->work->begin_answering().ok());
      EXPECT_EQ(record(key).state, end);
      EXPECT_EQ(record(key).refunded, !answered && end != WorkState::kLost) << key;
      EXPECT_EQ(begun->work->record().refunded, record(key).refunded);
      const auto spent = status().reservations.back().state;
      EXPECT_EQ(spent == ReservationState::kReturned, record(key).refunded);
      begun->work.reset();
      EXPECT_EQ(begin(key, kFacts, gaussian(0.01)).error().code, ErrorCode::kBudgetRefused);
    }
}

TEST_F(WorkTest, WhatExpiresEndsWhenItIsSeenAndIsGivenBackIfItNeverAnswered) {
  const auto soon = std::chrono::system_clock::now() + std::chrono::seconds(4);
  Ledger ledger = open();
  for (const char* key : {"silent", "spoke", "held"}) {
    auto begun = ledger.begin_work("d", gaussian(0.01), "", key, kFacts, soon);
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    if (key == std::string("spoke")) {
      EXPECT_TRUE(begun->work->advance(1, "h").ok());
    }
  }
  auto held = ledger.begin_work("d", gaussian(0.01), "", "held", kFacts, soon);
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(ledger.begin_work("d", gaussian(0.01), "", "silent", kFacts, soon).ok());
  std::this_thread::sleep_until(soon + std::chrono::milliseconds(1100));
  EXPECT_THAT(held->work->advance(1, "h").error().message, HasSubstr("expired"));
  EXPECT_EQ(held->work->record().state, WorkState::kExpired);
  EXPECT_THAT(ledger.begin_work("d", gaussian(0.01), "", "silent", kFacts, soon).error().message, HasSubstr("expired"));
  EXPECT_FALSE(ledger.begin_work("d", gaussian(0.01), "", "new", kFacts, soon).ok());
  const auto status = *ledger.show("d");
  ASSERT_EQ(status.works.size(), 3U);
  for (const WorkRecord& work : status.works) {
    EXPECT_EQ(work.state, WorkState::kExpired) << work.key;
    EXPECT_EQ(work.refunded, work.key != "spoke") << work.key;
  }
}

TEST_F(WorkTest, ABudgetThatDoesNotAllowItLeavesNoTrace) {
  const auto before = *open().generation();
  EXPECT_EQ(begin("study 1", kFacts, gaussian(9)).error().code, ErrorCode::kBudgetRefused);
  EXPECT_FALSE(open().find_work("study 1")->has_value());
  EXPECT_EQ(*open().generation(), before);
  EXPECT_TRUE(begin("study 1").ok());
}

TEST_F(WorkTest, KeysAndNamesOfFactsArePlainText) {
  for (const std::string& key : {std::string(), std::string("a\nb"), std::string(201, 'x'), std::string("\x1b[2J")}) {
    EXPECT_EQ(begin(key).error().code, ErrorCode::kUsage);
    EXPECT_EQ(begin("k", {{{key, ""}}}).error().code, ErrorCode::kUsage);
  }
}

TEST_F(WorkTest, TheDatabaseItselfRefusesToTakeAWorkBack) {
  {
    auto begun = begin();
    ASSERT_TRUE(begun->work->meet("roster").ok());
    ASSERT_TRUE(begun->work->advance(1, "h1").ok());
  }
  for (const char* sql :
       {"DELETE FROM work", "DELETE FROM pinned", "DELETE FROM head", "UPDATE work SET step = 0",
        "UPDATE work SET state = 'met'", "UPDATE work SET met = x'00'", "UPDATE work SET reservation = 2",
        "UPDATE pinned SET value = x''", "UPDATE head SET generation = generation - 1"})
    EXPECT_THAT(query(path(), sql), HasSubstr("error: ")) << sql;
  ASSERT_TRUE(begin("study 2").ok());
  EXPECT_THAT(query(path(), "UPDATE work SET state = 'answering' WHERE key = 'study 2'"),
              HasSubstr("before its charge"));
}

TEST_F(WorkTest, WithoutALedgerTheSameOrderOfCallsHolds) {
  const auto work = work_without_ledger(gaussian(0.1), "run 1", kFacts);
  EXPECT_FALSE(work->in_ledger());
  EXPECT_TRUE(work->meet("r").ok());
  EXPECT_FALSE(work->advance(2, "h").ok());
  EXPECT_TRUE(work->advance(1, "h").ok());
  EXPECT_TRUE(work->close(WorkState::kClosed).ok());
  EXPECT_FALSE(work->record().refunded);
  EXPECT_FALSE(work->advance(2, "h").ok());
}

}  // namespace
}  // namespace eigenveil::test
