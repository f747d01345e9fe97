// SPDX-License-Identifier: Apache-2.0
// Damage, deletion and older copies of a ledger are seen.
#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "ledger_testing.hpp"
#include "src/ledger/schema.hpp"

namespace eigenveil::test {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class SealTest : public LedgerTest {
 protected:
  SealTest() {
    Ledger ledger = open();
    EXPECT_TRUE(ledger.create(budget("d", 2, 1e-6)).ok());
    EXPECT_TRUE(accepts(ledger, "d", join(gaussian(0.123456789), pure(0.0625))));
    spend("study 1");
  }
  // A work that has answered.
  void spend(const std::string& key, double mu = 0.05) const {
    auto begun = open().begin_work("d", gaussian(mu), "a study", key, {{{"data", "x"}}});
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    ASSERT_TRUE(begun->work->advance(1, "h1").ok());
  }
  // Past the ledger's code and its triggers.
  void forge(const std::string& sql) const {
    for (const char* trigger : {"event_kept", "event_fixed", "reservation_kept", "reservation_fixed", "dataset_fixed",
                                "work_fixed", "work_kept", "pinned_fixed", "pinned_kept", "head_rises"})
      query(path(), std::string("DROP TRIGGER ") + trigger);
    const std::string answer = query(path(), sql);
    ASSERT_THAT(answer, ::testing::Not(HasSubstr("error"))) << sql;
  }
  double spent() const { return open().show("d")->spent_epsilon; }
  std::string anchor() const { return path() + ".anchor"; }
};

TEST_F(SealTest, EveryForgedChangeOfARowIsRefusedInOneSentence) {
  const std::string whole = bytes_of(path());
  for (const char* sql :
       {"UPDATE event SET mechanism = 'gaussian:mu=0.02' WHERE position = 0",
        "UPDATE event SET label = 'x'",
        "DELETE FROM event",
        "DELETE FROM event WHERE position = 1",
        "INSERT INTO event VALUES (1, 2, 'x', 'pure:epsilon=1', 1)",
        "UPDATE reservation SET state = 'returned'",
        "UPDATE reservation SET purpose = 'x'",
        "UPDATE reservation SET dataset = 1, created = 'x' WHERE id = 1",
        "UPDATE dataset SET epsilon = 1000",
        "UPDATE dataset SET filter = 3",
        "UPDATE work SET step = 0, head = x''",
        "UPDATE work SET state = 'reserved'",
        "UPDATE work SET expires = 'x'",
        "DELETE FROM pinned",
        "UPDATE pinned SET value = x'00'",
        "DELETE FROM seal",
        "DELETE FROM pinned; DELETE FROM work; DELETE FROM seal WHERE name = 'work'",
        "DELETE FROM event WHERE reservation = 1; DELETE FROM reservation WHERE id = 1; DELETE FROM seal WHERE name = "
        "'reservation' AND row = 1",
        "UPDATE head SET rows = rows - 1",
        "UPDATE head SET generation = generation + 1",
        "DELETE FROM head",
        "INSERT INTO file(dataset, path, content) VALUES (1, 'x', 'y')",
        "INSERT INTO people VALUES (1, 'x')",
        "INSERT INTO part(dataset, hashes) VALUES (1, x'00')"}) {
    if (std::string(sql) == "DELETE FROM head") query(path(), "DROP TRIGGER head_kept");
    forge(sql);
    const auto ledger = Ledger::open(path());
    ASSERT_FALSE(ledger.ok()) << sql;
    EXPECT_EQ(ledger.error().code, ErrorCode::kBadInput) << sql;
    EXPECT_THAT(ledger.error().message, HasSubstr("damaged")) << sql;
    put(path(), whole);
    ASSERT_TRUE(Ledger::open(path()).ok());
  }
}

// An old version of one row, with the checksum it had then, among rows of today.
TEST_F(SealTest, ARowThatIsOlderThanTheOthersIsRefused) {
  auto begun = open().begin_work("d", gaussian(0.05), "", "study 2", {});
  ASSERT_TRUE(begun.ok());
  const std::string old = query(path(), "SELECT hex(checksum) FROM seal WHERE name = 'work' AND row = 2");
  ASSERT_TRUE(begun->work->meet("r").ok());
  forge("UPDATE work SET state = 'reserved', met = x'' WHERE id = 2; UPDATE seal SET checksum = x'" + old +
        "' WHERE name = 'work' AND row = 2");
  EXPECT_THAT(Ledger::open(path()).error().message, HasSubstr("older than the others"));
}

TEST_F(SealTest, AProcessThatHasTheLedgerOpenSeesDamageBeforeItCharges) {
  Ledger ledger = open();
  auto begun = ledger.begin_work("d", gaussian(0.05), "", "study 2", {});
  forge("UPDATE event SET mechanism = 'gaussian:mu=0.01' WHERE reservation = 1 AND position = 0");
  EXPECT_THAT(ledger.reserve("d", gaussian(0.01), "").error().message, HasSubstr("damaged"));
  EXPECT_TRUE(begun->work->advance(1, "h").ok()) << "what it holds itself is whole";
  forge("UPDATE work SET step = 0, state = 'met' WHERE id = 2");
  EXPECT_THAT(begun->work->advance(1, "other").error().message, HasSubstr("damaged"));
}

TEST_F(SealTest, AFlippedBitIsRefusedOrChangesNothing) {
  const std::string whole = bytes_of(path());
  const auto before = *open().show("d");
  const auto work = **open().find_work("study 1");
  std::mt19937 random(3);
  const int rounds = std::getenv("EIGENVEIL_NIGHTLY") != nullptr ? 20000 : 300;
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string flipped = whole;
    // Half of them where the rows' texts lie, half anywhere.
    std::size_t place = random() % whole.size();
    if (round % 2 == 0)
      place = std::min(whole.find("gaussian:mu=", random() % 2 * whole.size() / 2), whole.size() - 99) + random() % 40;
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << random() % 8));
    put(path(), flipped);
    auto ledger = Ledger::open(path());
    const auto after = ledger.ok() ? ledger->show("d") : Result<DatasetStatus>(ledger.error());
    if (!after.ok()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(after->spent_epsilon, before.spent_epsilon) << place;
    ASSERT_EQ(after->remaining_epsilon, before.remaining_epsilon) << place;
    ASSERT_EQ(after->reservations.size(), before.reservations.size()) << place;
    const auto same = ledger->find_work("study 1");
    ASSERT_TRUE(same.ok() && *same) << place;
    ASSERT_EQ((*same)->step, work.step);
    ASSERT_EQ((*same)->head, work.head);
  }
  EXPECT_GT(refused, rounds / 4);
}

TEST_F(SealTest, AnOlderCopyIsFrozenAndItsOpenWorksAreLostUntilItIsSaidWhatWasSpent) {
  const std::string older = bytes_of(path());
  const auto generation = *open().generation();
  spend("study 2", 0.1);
  const double before = spent();
  put(path(), older);
  Ledger ledger = open();
  EXPECT_GT(*ledger.generation(), generation + 2) << "beyond all that was seen of it";
  EXPECT_TRUE(ledger.show("d")->frozen);
  const auto refused = ledger.reserve("d", gaussian(0.01), "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("`eigenveil ledger accept-restore`"));
  EXPECT_EQ((*ledger.find_work("study 1"))->state, WorkState::kLost);
  for (const char* key : {"study 1", "study 2"})
    EXPECT_FALSE(ledger.begin_work("d", gaussian(0.05), "a study", key, {{{"data", "x"}}}).ok()) << key;
  EXPECT_EQ(ledger.create(budget("e", 1, 1e-6)).error().code, ErrorCode::kBudgetRefused);

  ASSERT_TRUE(ledger.accept_restore("d", *Epsilon::of(0.5)).ok());
  EXPECT_FALSE(ledger.accept_restore("d", {}).ok());
  EXPECT_GE(spent(), before);
  EXPECT_EQ(ledger.show("d")->reservations.back().state, ReservationState::kAnswered);
  EXPECT_FALSE(ledger.show("d")->frozen);
  EXPECT_TRUE(accepts(ledger, "d", gaussian(0.01)));
  EXPECT_TRUE(ledger.create(budget("e", 1, 1e-6)).ok());
}

TEST_F(SealTest, WhatWasSpentIsChargedEvenBeyondTheBudget) {
  const std::string older = bytes_of(path());
  spend("study 2");
  put(path(), older);
  Ledger ledger = open();
  ASSERT_TRUE(ledger.accept_restore("d", *Epsilon::of(9)).ok());
  EXPECT_EQ(ledger.show("d")->remaining, "nothing");
  EXPECT_FALSE(accepts(ledger, "d", gaussian(1e-6)));
}

TEST_F(SealTest, ACopyThatWentItsOwnWayIsFrozenThoughItIsNoOlder) {
  const std::string twin = (folder_ / "twin.db").string();
  for (const char* part : {"", ".key", ".anchor"}) put(twin + part, bytes_of(path() + part));
  auto other = Ledger::open(twin);
  ASSERT_TRUE(other.ok()) << other.error().message;
  ASSERT_TRUE(accepts(*other, "d", gaussian(0.01)));
  {
    Ledger ledger = open();
    ASSERT_TRUE(accepts(ledger, "d", gaussian(0.2)));
    ASSERT_EQ(*ledger.generation(), *other->generation());
  }
  put(path(), bytes_of(twin));
  EXPECT_TRUE(open().show("d")->frozen);
}

TEST_F(SealTest, AProcessKilledBetweenItsCommitAndTheAnchorFreezesNothing) {
  const std::string before = bytes_of(anchor());
  spend("study 2");  // two commits: charged, advanced
  const std::string after = bytes_of(anchor());
  put(anchor(), before);
  EXPECT_TRUE(open().show("d")->frozen) << "two commits behind: no process leaves that";

  remove_ledger();
  ASSERT_TRUE(open().create(budget("d", 2, 1e-6)).ok());
  const std::string last = bytes_of(anchor());
  EXPECT_TRUE(accepts(*std::make_unique<Ledger>(open()), "d", gaussian(0.1)));
  put(anchor(), last);
  EXPECT_FALSE(open().show("d")->frozen);
  EXPECT_NE(bytes_of(anchor()), last) << "it is caught up with";
}

TEST_F(SealTest, AnAnchorThatIsGoneOrUnreadableFreezes) {
  for (const std::string& text : {std::string(), std::string("x"), std::string(86, '0')}) {
    text.empty() ? static_cast<void>(std::filesystem::remove(anchor())) : put(anchor(), text);
    EXPECT_TRUE(open().show("d")->frozen);
    ASSERT_TRUE(open().accept_restore("d", {}).ok());
    EXPECT_FALSE(open().show("d")->frozen);
  }
}

TEST_F(SealTest, AnAnchorOnAnotherDiskOutlivesARestoreOfTheWholeFolder) {
  namespace fs = std::filesystem;
  const fs::path home = folder_ / "home";
  const std::string file = (home / "other.db").string();
  fs::create_directories(home);
  fs::create_directories(folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere" / "anchor", file + ".anchor");
  const auto opened = [&] { return *Ledger::open(file, std::chrono::seconds(1)); };
  ASSERT_TRUE(opened().create(budget("d", 1, 1e-6)).ok());
  fs::copy(home, folder_ / "backup", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  ASSERT_TRUE(accepts(*std::make_unique<Ledger>(opened()), "d", gaussian(0.1)));
  fs::remove_all(home);
  fs::copy(folder_ / "backup", home, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  EXPECT_TRUE(opened().show("d")->frozen);
  EXPECT_TRUE(fs::is_symlink(file + ".anchor"));
}

TEST_F(SealTest, AnAnchorWhoseDiskIsNotThereStopsEverythingAndChangesNothing) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_ / "disk");
  fs::rename(anchor(), folder_ / "disk" / "anchor");
  fs::create_symlink(folder_ / "disk" / "anchor", anchor());
  ASSERT_TRUE(Ledger::open(path()).ok());
  fs::rename(folder_ / "disk", folder_ / "away");
  const auto ledger = Ledger::open(path());
  ASSERT_FALSE(ledger.ok());
  EXPECT_THAT(ledger.error().message, HasSubstr("bring its disk back"));
  fs::rename(folder_ / "away", folder_ / "disk");
  const auto all = open().list();
  ASSERT_TRUE(all.ok() && !all->empty());
  for (const DatasetStatus& status : *all) EXPECT_FALSE(status.frozen);
}

TEST_F(SealTest, ALedgerThatIsGoneIsNotBegunAnewAsIfNothingHadBeenSpent) {
  std::filesystem::remove(path());
  const auto ledger = Ledger::open(path());
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(ledger.error().message, HasSubstr(anchor()));
}

TEST_F(SealTest, AKeyThatIsGoneShortOrAnothersIsRefused) {
  const std::string key = bytes_of(path() + ".key");
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(std::filesystem::status(path() + ".key").permissions(), std::filesystem::perms(0600));
  for (const std::string& other : {std::string(), std::string(31, 'x'), std::string(32, 'x')}) {
    other.empty() ? static_cast<void>(std::filesystem::remove(path() + ".key")) : put(path() + ".key", other);
    const auto ledger = Ledger::open(path());
    ASSERT_FALSE(ledger.ok());
    EXPECT_EQ(ledger.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(ledger.error().message, HasSubstr("key"));
  }
  put(path() + ".key", key);
  EXPECT_TRUE(Ledger::open(path()).ok());
}

TEST_F(SealTest, VerifyCountsTheRows) { EXPECT_EQ(*open().verify(), 1 + 2 + 1); }

// Made by hand, as the programs before this one made them.
TEST_F(SealTest, LedgersOfOlderFormatsAreBroughtUpToDateAndSealedAsTheyAre) {
  for (const int format : {1, 2}) {
    remove_ledger();
    put(path(), "");
    query(path(), ledger::kFirstFormat);
    if (format == 2) query(path(), ledger::kSecondFormat);
    query(path(), "PRAGMA application_id = " + std::to_string(ledger::kApplicationId) +
                      "; PRAGMA user_version = " + std::to_string(format));
    query(path(),
          "INSERT INTO dataset(name, epsilon, delta, adjacency, unit) VALUES ('d', 1, 1e-6, 'replace-one', 'row');"
          "INSERT INTO reservation(dataset, purpose) VALUES (1, 'old');"
          "INSERT INTO event VALUES (1, 0, 'g', 'gaussian:mu=0.1', 1)");
    {
      Ledger ledger = open();
      const auto status = ledger.show("d");
      ASSERT_TRUE(status.ok()) << status.error().message;
      ASSERT_EQ(status->reservations.size(), 1U);
      EXPECT_EQ(status->reservations[0].plan.events, gaussian(0.1).events);
      EXPECT_FALSE(status->budget.allow_model_based);
      EXPECT_FALSE(status->frozen);
      EXPECT_EQ(*ledger.verify(), 2);
      PrivacyPlan model = gaussian(0.1);
      model.model_based = true;
      EXPECT_FALSE(accepts(ledger, "d", model));
    }
    forge("UPDATE event SET mechanism = 'gaussian:mu=0.01'");
    EXPECT_FALSE(Ledger::open(path()).ok());
  }
}

}  // namespace
}  // namespace eigenveil::test
