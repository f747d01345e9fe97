// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/ledger.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST_F(LedgerTest, AReservationAndItsDoublesSurviveAReopenBitForBit) {
  const double third = 1.0 / 3;
  PrivacyPlan plan{Adjacency::kAddRemoveOne,
                   {{"first", GaussianEvent{std::nextafter(0.1, 1)}, 7},
                    {"it's \"second\"", PureEvent{third * 1e-9}, 1},
                    {"dritte Übung, 次; DROP TABLE event; --", PoissonGaussianEvent{third, 1 + 1e-15}, 1LL << 40}}};
  plan.person = "O'Brien's patient";
  {
    Ledger ledger = open();
    ASSERT_TRUE(
        ledger.create({.name = "d", .limit = {}, .adjacency = Adjacency::kAddRemoveOne, .person = "O'Brien's patient"})
            .ok());
    ASSERT_TRUE(accepts(ledger, "d", plan, Adjacency::kAddRemoveOne));
  }
  const auto status = open().show("d");
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(status->reservations.size(), 1U);
  EXPECT_EQ(status->reservations[0].plan, plan);
  EXPECT_EQ(status->reservations[0].purpose, "test");
  EXPECT_EQ(status->budget.person, "O'Brien's patient");
  EXPECT_EQ(status->budget.adjacency, Adjacency::kAddRemoveOne);
  EXPECT_THAT(status->created, MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_THAT(status->reservations[0].created, MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST_F(LedgerTest, ABudgetSurvivesAReopenBitForBit) {
  const double epsilon = std::nextafter(0.7, 1);
  ASSERT_TRUE(open().create(budget("d", epsilon, 3e-300)).ok());
  const auto status = open().show("d");
  EXPECT_EQ(status->budget.limit->epsilon.value(), epsilon);
  EXPECT_EQ(status->budget.limit->delta.value(), 3e-300);
}

TEST_F(LedgerTest, NamesMayHoldQuotesAndUnicodeAndAreListedInOrder) {
  Ledger ledger = open();
  const std::vector<std::string> names = {"'; DROP TABLE dataset; --", "\"quoted\" 100% {}", "Zürich 患者", "a", "a b"};
  for (const auto& name : names) {
    ASSERT_TRUE(ledger.create(budget(name, 1, 1e-6)).ok()) << name;
    ASSERT_TRUE(accepts(ledger, name, gaussian(0.1))) << name;
    EXPECT_FALSE(accepts(ledger, name, gaussian(10))) << name;
  }
  const auto all = ledger.list();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), names.size());
  std::vector<std::string> found;
  for (const auto& status : *all) found.push_back(status.budget.name);
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(found, sorted);
}

TEST_F(LedgerTest, CreateRefusesNamesThatAreEmptyTooLongTakenOrHoldControlCharacters) {
  Ledger ledger = open();
  EXPECT_TRUE(ledger.create(budget(std::string(200, 'x'), 1, 1e-6)).ok());
  for (const std::string& name : {std::string(), std::string(201, 'x'), std::string("a\nb"), std::string("a\0b", 3),
                                  std::string("\x7f"), std::string(200, 'x')}) {
    const Status status = ledger.create(budget(name, 1, 1e-6));
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(ledger.list()->size(), 1U);
}

TEST_F(LedgerTest, CreateIfMissingKeepsAnExistingBudget) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  ASSERT_TRUE(ledger.create_if_missing({.name = "d", .limit = {}}).ok());
  EXPECT_TRUE(ledger.show("d")->budget.limit.has_value());
  ASSERT_TRUE(ledger.create_if_missing({.name = "e", .limit = {}}).ok());
  EXPECT_FALSE(ledger.show("e")->budget.limit.has_value());
  EXPECT_FALSE(ledger.create_if_missing({.name = "", .limit = {}}).ok());
}

TEST_F(LedgerTest, AnUnknownDataSetIsAUsageErrorThatSaysHowToCreateIt) {
  Ledger ledger = open();
  for (const Error& error :
       {ledger.reserve("d", gaussian(1), "").error(), ledger.show("d").error(), ledger.release_unused("d").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kUsage);
    EXPECT_THAT(error.message, HasSubstr("`eigenveil ledger create`"));
  }
}

TEST_F(LedgerTest, AnotherAdjacencyThanTheBudgetsIsAUsageError) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  const auto reservation = ledger.reserve("d", between(Adjacency::kAddRemoveOne, gaussian(0.1)), "");
  ASSERT_FALSE(reservation.ok());
  EXPECT_EQ(reservation.error().code, ErrorCode::kUsage);
  EXPECT_THAT(reservation.error().message, HasSubstr("`adjacency` replace-one"));
  EXPECT_TRUE(ledger.show("d")->reservations.empty());
}

TEST_F(LedgerTest, PlansThatMakeNoSenseAreRefusedBeforeAnythingIsCharged) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create({.name = "d", .limit = {}}).ok());
  for (const PrivacyPlan& plan : {PrivacyPlan(Adjacency::kReplaceOne), gaussian(0.1, 0), gaussian(0.1, -3),
                                  between(Adjacency::kReplaceOne, poisson(0.1, 1, 5))}) {
    const auto reservation = ledger.reserve("d", plan, "");
    ASSERT_FALSE(reservation.ok());
    EXPECT_EQ(reservation.error().code, ErrorCode::kUsage) << reservation.error().message;
  }
  EXPECT_TRUE(ledger.show("d")->reservations.empty());
}

TEST_F(LedgerTest, ARefusalSaysWhatWasAskedWhatIsSpentWhatRemainsAndWhatToDo) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("wards", 1, 1e-6)).ok());
  ASSERT_TRUE(accepts(ledger, "wards", gaussian(gaussian_mu(*Epsilon::of(0.5), *Delta::of(1e-6)))));
  const auto reservation = ledger.reserve("wards", gaussian(1), "");
  ASSERT_FALSE(reservation.ok());
  EXPECT_EQ(reservation.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(reservation.error().message,
              AllOf(HasSubstr("'wards'"), HasSubstr("epsilon 4.8"), HasSubstr("0.5 has been spent"),
                    HasSubstr("what remains: epsilon 0.8"), HasSubstr("release-unused")));
}

TEST_F(LedgerTest, WhatRemainsCanBeSpent) {
  Ledger ledger = open();
  for (const double epsilon : {0.05, 1.0, 20.0}) {
    const std::string name = std::to_string(epsilon);
    ASSERT_TRUE(ledger.create(budget(name, epsilon, 1e-6)).ok());
    for (const double share : {0.3, 0.4}) {
      ASSERT_TRUE(accepts(ledger, name, *calibrate(gaussian(1, 3), *Epsilon::of(share * epsilon), *Delta::of(1e-6))));
    }
    const double remaining = ledger.show(name)->remaining_epsilon;
    ASSERT_GT(remaining, 0.5 * epsilon);
    EXPECT_FALSE(accepts(ledger, name, *calibrate(gaussian(1), *Epsilon::of(remaining * 1.001), *Delta::of(1e-6))));
    EXPECT_TRUE(accepts(ledger, name, *calibrate(gaussian(1), *Epsilon::of(remaining), *Delta::of(1e-6))));
    EXPECT_LT(ledger.show(name)->remaining_epsilon, 0.05 * epsilon);
    EXPECT_LE(ledger.show(name)->spent_epsilon, epsilon);
  }
}

TEST_F(LedgerTest, OnlyAReservationClosedUnusedCanBeReturnedAndItsBudgetComesBack) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  const PrivacyPlan half = *calibrate(gaussian(1), *Epsilon::of(0.6), *Delta::of(1e-6));
  auto answered = ledger.reserve("d", half, "answered");
  auto unused = ledger.reserve("d", half, "unused");
  ASSERT_TRUE(answered.ok() && unused.ok());
  ASSERT_TRUE((*answered)->begin_answering().ok());
  (*answered)->close_unused();  // too late: it has answered
  EXPECT_EQ(*ledger.release_unused("d"), 0);
  (*unused)->close_unused();
  EXPECT_FALSE((*unused)->begin_answering().ok());
  EXPECT_FALSE(accepts(ledger, "d", half)) << "unused but not yet returned is still charged";
  EXPECT_EQ(*ledger.release_unused("d"), 1);
  EXPECT_EQ(*ledger.release_unused("d"), 0);
  EXPECT_FALSE((*unused)->begin_answering().ok());
  EXPECT_TRUE(accepts(ledger, "d", half));
  std::vector<std::string> states;
  const auto status = ledger.show("d");
  for (const auto& record : status->reservations) states.emplace_back(name(record.state));
  EXPECT_THAT(states, ::testing::ElementsAre("answered", "returned", "reserved"));
}

TEST_F(LedgerTest, AReservationBeginsOnceOnlyAndOutlivesItsLedger) {
  std::unique_ptr<Reservation> reservation;
  {
    Ledger ledger = open();
    ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
    reservation = *ledger.reserve("d", gaussian(0.1), "");
  }
  EXPECT_TRUE(reservation->in_ledger());
  EXPECT_EQ(reservation->plan().events, gaussian(0.1).events);
  EXPECT_TRUE(reservation->begin_answering().ok());
  EXPECT_FALSE(reservation->begin_answering().ok());
  EXPECT_EQ(open().show("d")->reservations.at(0).state, ReservationState::kAnswered);
}

TEST_F(LedgerTest, WithoutALedgerTheSameOrderOfCallsHolds) {
  const auto answered = reserve_without_ledger(gaussian(0.1));
  EXPECT_FALSE(answered->in_ledger());
  EXPECT_EQ(answered->plan().events, gaussian(0.1).events);
  EXPECT_TRUE(answered->begin_answering().ok());
  const auto closed = reserve_without_ledger(gaussian(0.1));
  closed->close_unused();
  EXPECT_FALSE(closed->begin_answering().ok());
}

TEST_F(LedgerTest, TheDatabaseItselfRefusesToForgetOrLowerACharge) {
  {
    Ledger ledger = open();
    ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
    auto reservation = ledger.reserve("d", gaussian(0.1), "");
    ASSERT_TRUE((*reservation)->begin_answering().ok());
  }
  for (const char* sql :
       {"DELETE FROM reservation", "DELETE FROM event", "DELETE FROM dataset", "UPDATE event SET count = 0",
        "UPDATE event SET mechanism = 'gaussian:mu=0.01'", "UPDATE reservation SET state = 'returned'",
        "UPDATE reservation SET state = 'unused'", "UPDATE reservation SET state = 'reserved'",
        "UPDATE reservation SET dataset = 7", "UPDATE dataset SET epsilon = 9", "UPDATE dataset SET epsilon = NULL",
        "UPDATE dataset SET filter = 2, alpha = 2"})
    EXPECT_THAT(query(path(), sql), HasSubstr("error: ")) << sql;
}

TEST_F(LedgerTest, WithoutALimitEverythingIsRecordedAndReported) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create({.name = "d", .limit = {}, .adjacency = Adjacency::kAddRemoveOne}).ok());
  EXPECT_EQ(ledger.show("d")->spent_epsilon, 0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(accepts(ledger, "d", gaussian(0.5), Adjacency::kAddRemoveOne));
  auto status = ledger.show("d");
  EXPECT_EQ(status->spent_delta, 1e-6);
  // mu = 1 at delta 1e-6: Phi(1/2 - eps) - e^eps Phi(-1/2 - eps) = 1e-6 at eps = 4.8865...
  EXPECT_NEAR(status->spent_epsilon, *epsilon_of(gaussian(1).events, *Delta::of(1e-6)), 1e-8);
  EXPECT_TRUE(std::isinf(status->remaining_epsilon));
  EXPECT_THAT(status->filter, HasSubstr("not limited"));
  ASSERT_TRUE(accepts(ledger, "d", poisson(0.01, 1, 1000), Adjacency::kAddRemoveOne));
  EXPECT_GT(ledger.show("d")->spent_epsilon, status->spent_epsilon);
  EXPECT_TRUE(std::isfinite(ledger.show("d")->spent_epsilon));
}

TEST_F(LedgerTest, TheFileAndItsFolderAreMadeForTheirOwnerAlone) {
  const auto file = folder_ / "deep" / "er" / "ledger.db";
  ASSERT_TRUE(Ledger::open(file.string()).ok());
  struct stat info {};
  for (const auto& folder : {file.parent_path(), file.parent_path().parent_path()}) {
    ASSERT_EQ(::stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
  }
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(LedgerTest, TheDefaultPathFollowsTheXdgVariablesAndThenTheHomeFolder) {
  ::setenv("XDG_DATA_HOME", "/data", 1);
  ::setenv("HOME", "/home/x", 1);
  EXPECT_EQ(Ledger::default_path(), "/data/eigenveil/ledger.db");
  for (const char* ignored : {"", "relative"}) {
    ::setenv("XDG_DATA_HOME", ignored, 1);
    EXPECT_EQ(Ledger::default_path(), "/home/x/.local/share/eigenveil/ledger.db");
  }
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(Ledger::default_path(), "/home/x/.local/share/eigenveil/ledger.db");
}

// Files that are no ledger.

TEST_F(LedgerTest, AFolderAnEmptyPathAndADeviceAreRefusedInWords) {
  EXPECT_THAT(Ledger::open(folder_.string()).error().message, HasSubstr("not a file"));
  EXPECT_THAT(Ledger::open("/dev/null").error().message, HasSubstr("not a file"));
  EXPECT_EQ(Ledger::open("").error().code, ErrorCode::kUsage);
}

TEST_F(LedgerTest, ANameThatSqliteReservesForMemoryIsAnOrdinaryFile) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_TRUE(Ledger::open(":memory:").ok());
  EXPECT_GT(std::filesystem::file_size(folder_ / ":memory:"), 0U);
  std::filesystem::current_path(before);
}

TEST_F(LedgerTest, AFileThatIsNoDatabaseIsRefusedAndLeftAsItIs) {
  const std::string text(5000, 'x');
  std::ofstream(path()) << text;
  const auto ledger = Ledger::open(path());
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(ledger.error().message, HasSubstr("not a database"));
  EXPECT_EQ(std::filesystem::file_size(path()), text.size());
}

TEST_F(LedgerTest, ADatabaseOfAnotherProgramIsRefused) {
  { std::ofstream empty(path()); }
  query(path(), "CREATE TABLE songs(title TEXT)");
  EXPECT_THAT(Ledger::open(path()).error().message, HasSubstr("another program"));
}

TEST_F(LedgerTest, AnUnknownFormatIsRefused) {
  { Ledger ledger = open(); }
  query(path(), "PRAGMA user_version = 7");
  const auto ledger = Ledger::open(path());
  ASSERT_FALSE(ledger.ok());
  EXPECT_THAT(ledger.error().message, HasSubstr("has format 7, this program knows format 5"));
}

TEST_F(LedgerTest, AUnitPaysForItselfAlone) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create({.name = "rows", .limit = {}}).ok());
  ASSERT_TRUE(ledger.create({.name = "people", .limit = {}, .person = "who"}).ok());
  PrivacyPlan plan = gaussian(0.1);
  for (const std::string person : {"", "who", "other"}) {
    plan.person = person;
    for (const std::string name : {"rows", "people"}) {
      const auto paid = ledger.reserve(name, plan, "test");
      EXPECT_EQ(paid.ok(), person == (name == "rows" ? "" : "who")) << person << " " << name;
      if (paid.ok()) continue;
      EXPECT_EQ(paid.error().code, ErrorCode::kBudgetRefused);
      EXPECT_THAT(paid.error().message, HasSubstr("What one costs says nothing about the other"));
    }
  }
  EXPECT_EQ(ledger.show("people")->reservations.at(0).plan.person, "who");
}

TEST_F(LedgerTest, NoLimitIsKeptThatCannotBePromisedToPeople) {
  Ledger ledger = open();
  const auto limit = [](double delta) { return DatasetBudget::Limit{*Epsilon::of(1), *Delta::of(delta)}; };
  EXPECT_TRUE(ledger.create({.name = "rows", .limit = limit(1e-30)}).ok());
  EXPECT_TRUE(ledger.create({.name = "people", .limit = limit(1e-12), .person = "who"}).ok());
  const auto refused = ledger.create({.name = "more", .limit = limit(0.9e-12), .person = "who"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("below 1e-12"));
  EXPECT_FALSE(ledger.show("more").ok());
}

TEST_F(LedgerTest, AModelBasedPlanIsPaidOnlyByADataSetThatAllowsIt) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create({.name = "strict", .limit = {}}).ok());
  ASSERT_TRUE(ledger.create({.name = "model", .limit = {}, .allow_model_based = true}).ok());
  const PrivacyPlan plan(Adjacency::kReplaceOne, {{"projector", GaussianEvent{0.1}}}, true);
  const auto refused = ledger.reserve("strict", plan, "test");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("`allow_model_based`"));
  EXPECT_TRUE(ledger.show("strict")->reservations.empty());
  const auto paid = ledger.reserve("model", plan, "test");
  ASSERT_TRUE(paid.ok()) << paid.error().message;
  EXPECT_TRUE((*paid)->plan().model_based);
  EXPECT_THAT(query(path(), "UPDATE dataset SET allow_model_based = 1 WHERE name = 'strict'"), HasSubstr("error: "));
}

TEST_F(LedgerTest, ADamagedLedgerIsRefused) {
  {
    Ledger ledger = open();
    ASSERT_TRUE(ledger.create({.name = "d", .limit = {}}).ok());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(accepts(ledger, "d", join(gaussian(0.1), pure(0.1))));
  }
  const auto size = std::filesystem::file_size(path());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    const std::string noise(size - 8192, '\x5a');
    file.write(noise.data(), static_cast<std::streamsize>(noise.size()));
  }
  const auto ledger = Ledger::open(path());
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(ledger.error().message, HasSubstr("damaged"));
}

// Root may write anywhere, so these become another user first.
int as_nobody(const std::function<int()>& body) {
  return in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 98;
    return body();
  });
}

TEST_F(LedgerTest, AFileWithoutWritePermissionIsRefused) {
  { Ledger ledger = open(); }
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  std::filesystem::permissions(path(), std::filesystem::perms(0444));
  EXPECT_EQ(as_nobody([&] {
              const auto ledger = Ledger::open(path());
              return !ledger.ok() && ledger.error().message.find("read-only") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST_F(LedgerTest, AFolderWithoutWritePermissionIsRefusedWhetherTheFileExistsOrNot) {
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  EXPECT_EQ(as_nobody([&] {
              const auto ledger = Ledger::open(path());
              return !ledger.ok() && ledger.error().message.find("Permission denied") != std::string::npos ? 0 : 1;
            }),
            0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  { Ledger ledger = open(); }
  for (const char* part : {"", ".key"}) std::filesystem::permissions(path() + part, std::filesystem::perms(0666));
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  EXPECT_EQ(
      as_nobody([&] {
        const auto ledger = Ledger::open(path());
        return !ledger.ok() && ledger.error().message.find("cannot be opened for writing") != std::string::npos ? 0 : 1;
      }),
      0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
}

}  // namespace
}  // namespace eigenveil::test
