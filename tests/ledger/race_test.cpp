// SPDX-License-Identifier: Apache-2.0
// Real processes and threads that compete for one ledger.
#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using RaceTest = LedgerTest;

// Starts all children at once and returns their exit codes.
std::vector<int> race(int processes, const std::function<int(int)>& body) {
  int gate[2];
  if (::pipe(gate) != 0) return {};
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ::close(gate[1]);
    char go = 0;
    (void)!::read(gate[0], &go, 1);  // returns when the parent closes the gate
    leave_with([&] { return body(i); });
  }
  ::close(gate[0]);
  ::close(gate[1]);
  std::vector<int> exits;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    exits.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return exits;
}

int reserve_one(const std::string& path, const PrivacyPlan& plan) {
  auto ledger = Ledger::open(path);
  if (!ledger.ok()) return 1;
  const auto reservation = ledger->reserve("d", plan, "race");
  return reservation.ok() ? 0 : static_cast<int>(reservation.error().code);
}

TEST_F(RaceTest, OfEightProcessesThatRaceForABudgetOfThreePlansExactlyThreeSucceed) {
  const double mu = gaussian_mu(*Epsilon::of(1), *Delta::of(1e-6));
  for (int round = 0; round < 8; ++round) {
    remove_ledger();
    ASSERT_TRUE(open().create(budget("d", 1, 1e-6)).ok());
    const auto exits = race(8, [&](int) { return reserve_one(path(), gaussian(mu * std::sqrt(0.33))); });
    EXPECT_EQ(std::count(exits.begin(), exits.end(), 0), 3) << ::testing::PrintToString(exits);
    EXPECT_EQ(std::count(exits.begin(), exits.end(), 4), 5) << ::testing::PrintToString(exits);
    EXPECT_EQ(open().show("d")->reservations.size(), 3U);
  }
}

TEST_F(RaceTest, EightProcessesThatMakeTheSameFileAndDataSetAtOnceAllSucceed) {
  for (int round = 0; round < 4; ++round) {
    remove_ledger();
    const auto exits = race(8, [&](int) {
      auto ledger = Ledger::open(path());
      if (!ledger.ok() || !ledger->create_if_missing({.name = "d", .limit = {}}).ok()) return 1;
      return accepts(*ledger, "d", gaussian(0.1)) ? 0 : 2;
    });
    EXPECT_THAT(exits, ::testing::Each(0));
    EXPECT_EQ(open().show("d")->reservations.size(), 8U);
  }
}

TEST_F(RaceTest, ProcessesKilledAtRandomMomentsNeverLowerWhatIsSpent) {
  ASSERT_TRUE(open().create({.name = "d", .limit = {}}).ok());
  std::mt19937 random(7);
  double spent = 0;
  for (int round = 0; round < 25 || (spent == 0 && round < 1000); ++round) {
    const pid_t child = ::fork();
    if (child == 0)
      leave_with([&] {
        Ledger ledger = open();
        for (;;) {
          auto reservation = ledger.reserve("d", join(gaussian(0.01), pure(0.01)), "loop");
          if (!reservation.ok() || !(*reservation)->begin_answering().ok()) return 1;
        }
      });
    ::usleep(1000 * std::uniform_int_distribution<useconds_t>(5, 60)(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(query(path(), "PRAGMA integrity_check"), "ok");
    const auto after = open().show("d");
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_GE(after->spent_epsilon, spent);
    spent = after->spent_epsilon;
    for (const auto& record : after->reservations) ASSERT_EQ(record.plan.events.size(), 2U);
  }
  EXPECT_GT(spent, 0);
}

TEST_F(RaceTest, ThreadsThatShareALedgerAndItsReservationsDoNotMixTheirTransactions) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create({.name = "d", .limit = {}}).ok());
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 10; ++j) {
        auto reservation = ledger.reserve("d", gaussian(0.01), "thread");
        if (!reservation.ok()) {
          ++failures;
          continue;
        }
        if (i % 2 == 0)
          failures += (*reservation)->begin_answering().ok() ? 0 : 1;
        else
          (*reservation)->close_unused();
        // A refusal rolls its own transaction back, nobody else's.
        failures += ledger.reserve("absent", gaussian(0.01), "").ok() ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const auto status = ledger.show("d");
  EXPECT_EQ(status->reservations.size(), 40U);
  for (const auto& record : status->reservations) EXPECT_NE(record.state, ReservationState::kReserved);
  EXPECT_EQ(*ledger.release_unused("d"), 20);
}

TEST_F(RaceTest, TwoLedgersOfOneProcessSeeEachOthersCharges) {
  Ledger first = open();
  Ledger second = open();
  const double mu = gaussian_mu(*Epsilon::of(1), *Delta::of(1e-6));
  ASSERT_TRUE(first.create(budget("d", 1, 1e-6)).ok());
  EXPECT_TRUE(accepts(second, "d", gaussian(0.8 * mu)));
  EXPECT_FALSE(accepts(first, "d", gaussian(0.8 * mu)));
  EXPECT_TRUE(accepts(first, "d", gaussian(0.5 * mu)));
  EXPECT_EQ(second.show("d")->reservations.size(), 2U);
}

TEST_F(RaceTest, ALockHeldForTooLongIsAnErrorInWords) {
  Ledger ledger = open();
  sqlite3* other = nullptr;
  sqlite3_open(path().c_str(), &other);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto late = Ledger::open(path(), std::chrono::milliseconds(50));
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("locked by another process"));
  EXPECT_EQ(late.error().code, ErrorCode::kInternal);
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  EXPECT_TRUE(Ledger::open(path(), std::chrono::milliseconds(50)).ok());
  sqlite3_close(other);
}

}  // namespace
}  // namespace eigenveil::test
