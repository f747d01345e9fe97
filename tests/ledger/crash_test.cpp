// SPDX-License-Identifier: Apache-2.0
// What the ledger keeps when its process dies or its disk fails at any single write, sync, truncation or deletion. The
// stops are injected below SQLite, in its file system layer, so every step of a real transaction is visited.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <fstream>
#include <map>
#include <set>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

enum class Fault { kNone, kKillBefore, kKillAfter, kDiskFull };

struct Shim {
  sqlite3_vfs vfs;
  sqlite3_vfs* real;
  std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods;  // databases and journals have different ones
  const sqlite3_io_methods* real_methods = nullptr;                 // but write and sync alike
  Fault fault = Fault::kNone;
  int steps_left = 0;
  int steps = 0;
  int syncs = 0;
} shim;

// Runs one step of the disk, or what should happen instead of it.
template <class Step>
int stepped(Step step) {
  ++shim.steps;
  const bool now = shim.fault != Fault::kNone && shim.steps_left-- <= 0;
  if (now && shim.fault == Fault::kKillBefore) ::raise(SIGKILL);
  if (now && shim.fault == Fault::kDiskFull) return SQLITE_FULL;  // and at every later step
  const int result = step();
  if (now && shim.fault == Fault::kKillAfter) ::raise(SIGKILL);
  return result;
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return stepped([&] { return shim.real_methods->xWrite(file, data, size, offset); });
}
int sync(sqlite3_file* file, int flags) {
  ++shim.syncs;
  return stepped([&] { return shim.real_methods->xSync(file, flags); });
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  return stepped([&] { return shim.real_methods->xTruncate(file, size); });
}
int remove(sqlite3_vfs*, const char* name, int sync_folder) {
  return stepped([&] { return shim.real->xDelete(shim.real, name, sync_folder); });
}
int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const int result = shim.real->xOpen(shim.real, name, file, flags, out_flags);
  if (result != SQLITE_OK || file->pMethods == nullptr) return result;
  shim.real_methods = file->pMethods;
  sqlite3_io_methods& methods = shim.methods.try_emplace(file->pMethods, *file->pMethods).first->second;
  methods.xWrite = write;
  methods.xSync = sync;
  methods.xTruncate = truncate;
  file->pMethods = &methods;
  return result;
}

void arm(Fault fault, int steps) {
  shim.fault = fault;
  shim.steps_left = steps;
  shim.steps = shim.syncs = 0;
}

class CrashTest : public LedgerTest {
 protected:
  static void SetUpTestSuite() {
    if (shim.real != nullptr) return;
    shim.real = sqlite3_vfs_find(nullptr);
    shim.vfs = *shim.real;
    shim.vfs.zName = "shim";
    shim.vfs.xOpen = open_file;
    shim.vfs.xDelete = remove;
    sqlite3_vfs_register(&shim.vfs, 1);
  }
  void SetUp() override { arm(Fault::kNone, 0); }

  // What a reader finds after the accident: a clean file and whole reservations of three events each.
  DatasetStatus survey() const {
    EXPECT_EQ(query(path(), "PRAGMA integrity_check"), "ok");
    EXPECT_EQ(query(path(), "PRAGMA foreign_key_check"), "");
    Ledger ledger = open();
    auto status = ledger.show("d");
    EXPECT_TRUE(status.ok()) << status.error().message;
    for (const auto& record : status->reservations) EXPECT_EQ(record.plan.events, plan_.events);
    return *status;
  }

  // Visits every step of `action` with `fault`; `check` sees the child's exit code and the ledger afterwards.
  void visit(Fault fault, const std::function<int(Ledger&)>& action,
             const std::function<void(int, const DatasetStatus&)>& check) {
    for (int stop = 0;; ++stop) {
      ASSERT_LT(stop, 500);
      remove_ledger();
      {
        Ledger ledger = open();
        ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
        ASSERT_TRUE(accepts(ledger, "d", plan_));
      }
      const int exit = in_child([&] {
        Ledger ledger = open();
        arm(fault, stop);
        const int result = action(ledger);
        return shim.steps_left < 0 ? result : 100 + result;  // the fault never came: all steps were visited
      });
      check(exit >= 100 ? exit - 100 : exit, survey());
      if (exit >= 100) {
        EXPECT_GT(stop, 5);
        return;
      }
    }
  }

  const PrivacyPlan plan_ = join(join(gaussian(0.05, 3), gaussian(0.01)), pure(0.001, 2));
};

int reserve_only(Ledger& ledger, const PrivacyPlan& plan) { return ledger.reserve("d", plan, "test").ok() ? 0 : 1; }

int reserve_and_begin(Ledger& ledger, const PrivacyPlan& plan) {
  const auto reservation = ledger.reserve("d", plan, "test");
  if (!reservation.ok()) return 1;
  return (*reservation)->begin_answering().ok() ? 0 : 2;
}

TEST_F(CrashTest, KilledAtAnyStepAReservationIsWhollyThereOrNotAtAllAndEarlierOnesStay) {
  for (const Fault fault : {Fault::kKillBefore, Fault::kKillAfter}) {
    std::multiset<std::size_t> seen;
    visit(
        fault, [&](Ledger& ledger) { return reserve_only(ledger, plan_); },
        [&](int exit, const DatasetStatus& after) {
          seen.insert(after.reservations.size());
          EXPECT_THAT(exit, ::testing::AnyOf(0, -SIGKILL));
          EXPECT_TRUE(exit != 0 || after.reservations.size() == 2);
          EXPECT_GT(after.spent_epsilon, 0);
        });
    EXPECT_GT(seen.count(1), 0U) << "no stop came before the commit";
    EXPECT_GT(seen.count(2), 0U) << "no stop came after the commit";
    EXPECT_EQ(seen.count(1) + seen.count(2), seen.size());
  }
}

TEST_F(CrashTest, KilledAroundTheFirstAnswerTheChargeStaysWhateverTheState) {
  std::set<ReservationState> seen;
  visit(
      Fault::kKillAfter, [&](Ledger& ledger) { return reserve_and_begin(ledger, plan_); },
      [&](int exit, const DatasetStatus& after) {
        EXPECT_TRUE(exit != 0 || after.reservations.at(1).state == ReservationState::kAnswered);
        if (after.reservations.size() == 2) seen.insert(after.reservations[1].state);
        Ledger ledger = open();
        EXPECT_EQ(*ledger.release_unused("d"), 0);
        EXPECT_EQ(ledger.show("d")->spent_epsilon, after.spent_epsilon);
      });
  EXPECT_THAT(seen, ::testing::ElementsAre(ReservationState::kReserved, ReservationState::kAnswered));
}

TEST_F(CrashTest, ADiskThatIsFullFromAnyStepOnGivesAClearErrorAndNeverAHalfReservation) {
  visit(
      Fault::kDiskFull,
      [&](Ledger& ledger) {
        const auto reservation = ledger.reserve("d", plan_, "test");
        if (reservation.ok()) return (*reservation)->begin_answering().ok() ? 0 : 2;
        return reservation.error().message.find("disk is full") != std::string::npos ? 1 : 3;
      },
      [&](int exit, const DatasetStatus& after) {
        EXPECT_THAT(exit, ::testing::AnyOf(0, 1, 2));
        // Charged in vain is possible, answered without a charge is not.
        ASSERT_TRUE(exit == 1 || after.reservations.size() == 2);
        EXPECT_TRUE(exit != 0 || after.reservations[1].state == ReservationState::kAnswered);
      });
}

TEST_F(CrashTest, KilledWhileTheFileIsBeingMadeTheNextProcessStillOpensIt) {
  for (int stop = 0;; ++stop) {
    ASSERT_LT(stop, 200);
    remove_ledger();
    const int exit = in_child([&] {
      arm(Fault::kKillBefore, stop);
      return Ledger::open(path()).ok() ? 0 : 1;
    });
    Ledger ledger = open();
    ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
    ASSERT_TRUE(accepts(ledger, "d", plan_));
    if (exit == 0) break;
    ASSERT_EQ(exit, -SIGKILL);
  }
}

TEST_F(CrashTest, AReservationAndItsBeginAreSyncedToDiskBeforeTheyReturn) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  arm(Fault::kNone, 0);
  auto reservation = ledger.reserve("d", plan_, "test");
  ASSERT_TRUE(reservation.ok());
  EXPECT_GE(shim.syncs, 2);  // the journal, then the database
  arm(Fault::kNone, 0);
  ASSERT_TRUE((*reservation)->begin_answering().ok());
  EXPECT_GE(shim.syncs, 2);
}

TEST_F(CrashTest, WhenClosingUnusedCannotBeRecordedTheReservationStaysSpentAndAnswersNoMore) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  auto reservation = ledger.reserve("d", plan_, "test");
  ASSERT_TRUE(reservation.ok());
  arm(Fault::kDiskFull, 0);
  (*reservation)->close_unused();
  arm(Fault::kNone, 0);
  EXPECT_FALSE((*reservation)->begin_answering().ok());
  EXPECT_EQ(*ledger.release_unused("d"), 0);
  EXPECT_EQ(ledger.show("d")->reservations.at(0).state, ReservationState::kReserved);
}

TEST_F(CrashTest, AReallyFullFileSystemIsReportedBeforeAnyAnswer) {
  const std::string disk = (folder_ / "disk").string();
  std::filesystem::create_directory(disk);
  const auto says_full = [](const auto& result) {
    return !result.ok() && result.error().code == ErrorCode::kInternal &&
           result.error().message.find("disk is full") != std::string::npos;
  };
  // In a mount namespace of its own: the disk vanishes with the child.
  const int exit = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=256k") != 0)
      return 77;
    auto ledger = Ledger::open(disk + "/ledger.db");
    if (!ledger.ok() || !ledger->create({.name = "d", .limit = {}}).ok()) return 1;
    std::ofstream(disk + "/filler") << std::string(1 << 20, 'x');
    if (!says_full(ledger->reserve("d", plan_, "test"))) return 2;
    if (!says_full(Ledger::open(disk + "/other.db"))) return 3;
    // One that is there needs no more space to be opened, unless somebody else has taken its journal away.
    if (const auto again = Ledger::open(disk + "/ledger.db"); !again.ok() && !says_full(again)) return 4;
    std::filesystem::remove(disk + "/filler");
    const auto status = ledger->show("d");
    if (!status.ok() || !status->reservations.empty()) return 5;
    return ledger->reserve("d", plan_, "test").ok() ? 0 : 6;
  });
  if (exit == 77) GTEST_SKIP() << "mounting a small disk needs root";
  EXPECT_EQ(exit, 0);
}

TEST_F(CrashTest, AFileSizeLimitIsReportedBeforeAnyAnswer) {
  { Ledger ledger = open(); }
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const auto ledger = Ledger::open(path());
              return !ledger.ok() && ledger.error().message.find(path()) != std::string::npos ? 0 : 1;
            }),
            0);
  EXPECT_EQ(query(path(), "PRAGMA integrity_check"), "ok");
}

}  // namespace
}  // namespace eigenveil::test
