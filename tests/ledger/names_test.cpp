// SPDX-License-Identifier: Apache-2.0
// One ledger, one name: whatever lies beside it (key, anchor, lock) is there once, however it is reached.
#include <gmock/gmock.h>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamesTest : public LedgerTest {
 protected:
  std::set<std::string> files_in(const fs::path& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
};

TEST_F(NamesTest, ThroughALinkThereIsOneKeyOneAnchorAndOneLock) {
  fs::create_directories(folder_ / "real");
  fs::create_directories(folder_ / "other");
  { ASSERT_TRUE(Ledger::open((folder_ / "real" / "ledger.db").string()).ok()); }
  fs::create_symlink("../real/ledger.db", folder_ / "other" / "link.db");
  fs::create_directory_symlink("real", folder_ / "folder");
  auto direct = Ledger::open((folder_ / "real" / "ledger.db").string());
  auto linked = Ledger::open((folder_ / "other" / "link.db").string());
  auto through = Ledger::open((folder_ / "folder" / "ledger.db").string());
  ASSERT_TRUE(linked.ok() && through.ok());
  ASSERT_TRUE(linked->create(budget("d", 1, 1e-6)).ok());
  const auto held = linked->begin_work("d", gaussian(0.1), "", "study", {});
  ASSERT_TRUE(held.ok());
  for (auto* other : {&*direct, &*through}) {
    const auto second = other->begin_work("d", gaussian(0.1), "", "study", {});
    ASSERT_FALSE(second.ok()) << "two holders of one charge";
    EXPECT_THAT(second.error().message, HasSubstr("another process"));
    EXPECT_EQ(*other->generation(), *linked->generation());
  }
  EXPECT_THAT(files_in(folder_ / "other"), ElementsAre("link.db"));
  EXPECT_THAT(files_in(folder_ / "real"),
              ElementsAre("ledger.db", "ledger.db-journal", "ledger.db.anchor", "ledger.db.key", "ledger.db.lock"));
}

TEST_F(NamesTest, ALinkToNothingIsRefused) {
  fs::create_symlink("absent.db", folder_ / "link.db");
  const auto ledger = Ledger::open((folder_ / "link.db").string());
  ASSERT_FALSE(ledger.ok());
  EXPECT_THAT(ledger.error().message, HasSubstr("link to nothing"));
}

TEST_F(NamesTest, ASecondNameIsRefusedFromWhenItIsThereUntilItIsGone) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  fs::create_directories(folder_ / "other");
  const fs::path second = folder_ / "other" / "ledger.db";
  fs::create_hard_link(path(), second);
  for (const char* part : {".key", ".anchor"}) fs::copy(path() + part, second.string() + part);
  for (const std::string& name : {path(), second.string()}) {
    const auto again = Ledger::open(name);
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().message, HasSubstr("hard links"));
  }
  const auto charged = ledger.reserve("d", gaussian(0.1), "");
  ASSERT_FALSE(charged.ok()) << "by a process that had opened it before";
  EXPECT_THAT(charged.error().message, HasSubstr("hard links"));
  fs::remove(second);
  EXPECT_TRUE(ledger.reserve("d", gaussian(0.1), "").ok());
}

TEST_F(NamesTest, ALedgerThatIsMovedOrReplacedWhileItIsOpenChargesNothing) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.create(budget("d", 1, 1e-6)).ok());
  fs::rename(path(), path() + ".old");
  EXPECT_FALSE(ledger.reserve("d", gaussian(0.1), "").ok());
  fs::copy_file(path() + ".old", path());
  const auto charged = ledger.reserve("d", gaussian(0.1), "");
  ASSERT_FALSE(charged.ok());
  EXPECT_THAT(charged.error().message, HasSubstr("moved, removed or replaced"));
  EXPECT_EQ(open().show("d")->reservations.size(), 0U);
}

}  // namespace
}  // namespace eigenveil::test
