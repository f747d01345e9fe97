// SPDX-License-Identifier: Apache-2.0
// Which file was written for an entry, entries by their marks, and copies.
#include <gmock/gmock.h>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using ::testing::HasSubstr;

class ModelsTest : public LedgerTest {
 protected:
  ModelsTest() {
    Ledger ledger = open();
    EXPECT_TRUE(ledger.create(budget("d", 3, 1e-6)).ok());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(accepts(ledger, "d", gaussian(0.1)));
  }
};

TEST_F(ModelsTest, TheFileOfAnEntryIsRecordedOnceAndSealed) {
  Ledger ledger = open();
  const auto rows = *ledger.verify();
  ASSERT_TRUE(ledger.record_model(2, "abc").ok());
  ASSERT_TRUE(ledger.record_model(2, "other").ok());
  EXPECT_EQ(*ledger.verify(), rows + 1);
  const auto status = ledger.show("d");
  EXPECT_EQ(status->reservations[0].model, "");
  EXPECT_EQ(status->reservations[1].model, "abc");
  EXPECT_FALSE(ledger.record_model(7, "abc").ok()) << "there is no such entry";
  EXPECT_THAT(query(path(), "UPDATE model SET sha256 = 'x'"), HasSubstr("never changes"));
  EXPECT_THAT(query(path(), "DELETE FROM model"), HasSubstr("never deleted"));
  query(path(), "DROP TRIGGER model_fixed; UPDATE model SET sha256 = 'x'");
  EXPECT_FALSE(Ledger::open(path()).ok()) << "past the ledger's code";
}

TEST_F(ModelsTest, AnEntryIsFoundByItsNumberAndKeepsItsMark) {
  Ledger ledger = open();
  const auto first = ledger.find_entry(1), second = ledger.find_entry(2), none = ledger.find_entry(3);
  ASSERT_TRUE(first.ok() && second.ok() && none.ok());
  EXPECT_FALSE(none->has_value());
  EXPECT_EQ((*second)->dataset, "d");
  EXPECT_EQ((*second)->record.id, 2);
  EXPECT_EQ((*second)->record.mark.size(), 16U + 1 + 32);
  EXPECT_EQ((*first)->record.mark.substr(0, 17), (*second)->record.mark.substr(0, 17)) << "of one ledger";
  EXPECT_NE((*first)->record.mark, (*second)->record.mark);
  auto reservation = ledger.reserve("d", gaussian(0.1), "test");
  const std::string before = (*ledger.find_entry(3))->record.mark;
  ASSERT_TRUE((*reservation)->begin_answering().ok());
  EXPECT_EQ((*ledger.find_entry(3))->record.mark, before) << "whatever becomes of it";
}

TEST_F(ModelsTest, ABackupIsTheLedgerAsItWasAndIsFrozenInItsPlace) {
  const std::string copy = (folder_ / "copy.db").string();
  {
    Ledger ledger = open();
    ASSERT_TRUE(ledger.record_model(1, "abc").ok());
    ASSERT_TRUE(ledger.backup(copy).ok());
    const auto again = ledger.backup(copy);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().code, ErrorCode::kUsage);
    EXPECT_TRUE(ledger.backup(copy, Existing::kReplace).ok());
    EXPECT_TRUE(accepts(ledger, "d", gaussian(0.1)));
  }
  for (const char* part : {"", ".key"})
    EXPECT_EQ(std::filesystem::status(copy + part).permissions(), std::filesystem::perms(0600));
  for (const char* part : {"", ".key"})
    std::filesystem::copy_file(copy + part, path() + part, std::filesystem::copy_options::overwrite_existing);
  const auto status = open().show("d");
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(status->frozen);
  ASSERT_EQ(status->reservations.size(), 2U);
  EXPECT_EQ(status->reservations[0].model, "abc");
}

// As the program before this one left it.
constexpr const char* kThirdAgain = "DROP TABLE part; DROP TABLE people; DROP TABLE model; PRAGMA user_version = 3";

TEST_F(ModelsTest, ALedgerOfTheThirdFormatIsBroughtUpToDateAndKeepsItsChecksums) {
  const auto before = *open().generation();
  query(path(), kThirdAgain);
  Ledger ledger = open();
  EXPECT_EQ(*ledger.generation(), before);
  EXPECT_FALSE(ledger.show("d")->frozen);
  EXPECT_TRUE(ledger.record_model(1, "abc").ok());
  EXPECT_EQ(ledger.show("d")->reservations[0].model, "abc");
}

TEST_F(ModelsTest, WhatWasChangedInTheThirdFormatIsNotSealedAnew) {
  query(path(), kThirdAgain);
  query(path(), "DROP TRIGGER event_fixed; UPDATE event SET mechanism = 'gaussian:mu=0.01' WHERE reservation = 1");
  EXPECT_FALSE(Ledger::open(path()).ok());
}

TEST_F(ModelsTest, NoKeyIsMadeForALedgerThatHasLostIts) {
  query(path(), kThirdAgain);
  std::filesystem::remove(path() + ".key");
  EXPECT_FALSE(Ledger::open(path()).ok());
  EXPECT_FALSE(std::filesystem::exists(path() + ".key"));
}

}  // namespace
}  // namespace eigenveil::test
