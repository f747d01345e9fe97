// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/payer.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PayerTest : public LedgerTest {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  FileKeys keys(const std::string& file) const { return *open().hash_files({file}); }
  std::set<std::string> owners(const std::string& file) const { return *open().budgets_of(keys(file)); }
};

TEST_F(PayerTest, AFileBelongsToADataSetByPathOrByContentWhateverItsName) {
  const std::string data = file("data.csv", "1,2\n");
  EXPECT_THAT(owners(data), IsEmpty());
  EXPECT_FALSE(*open().has_files());
  ASSERT_TRUE(open().create(budget("d", 1, 1e-6), keys(data)).ok());
  EXPECT_TRUE(*open().has_files());
  EXPECT_THAT(owners(data), ElementsAre("d"));
  EXPECT_THAT(owners((folder_ / "." / "data.csv").string()), ElementsAre("d"));
  EXPECT_THAT(owners(file("copy.csv", "1,2\n")), ElementsAre("d"));
  EXPECT_THAT(owners(file("other.csv", "3,4\n")), IsEmpty());
  file("data.csv", "1,2\n5,6\n");
  EXPECT_THAT(owners(data), ElementsAre("d")) << "the same path, with more rows";
  std::filesystem::create_hard_link(data, folder_ / "link.csv");
  ASSERT_TRUE(open().create(budget("e", 1, 1e-6), keys((folder_ / "link.csv").string())).ok());
  EXPECT_THAT(owners(data), ElementsAre("d", "e"));
}

TEST_F(PayerTest, WhatCannotBeHashedIsRefusedBeforeAnythingIsStored) {
  EXPECT_FALSE(open().hash_files({file("a", "1"), (folder_ / "absent").string()}).ok());
}

TEST_F(PayerTest, AChargeBindsItsFilesAndARefusedOneBindsNothing) {
  const std::string data = file("data.csv", "1,2\n");
  ASSERT_TRUE(open().create(budget("d", 1, 1e-6)).ok());
  const auto generation = *open().generation();
  EXPECT_FALSE(open().reserve({"d", keys(data)}, gaussian(100), "too much").ok());
  EXPECT_FALSE(open().begin_work({"d", keys(data)}, gaussian(100), "too much", "study", {}).ok());
  EXPECT_FALSE(open().reserve({"absent", keys(data)}, gaussian(0.1), "").ok());
  EXPECT_THAT(owners(data), IsEmpty());
  EXPECT_EQ(*open().generation(), generation);
  ASSERT_TRUE(open().reserve({"d", keys(data)}, gaussian(0.1), "").ok());
  EXPECT_THAT(owners(data), ElementsAre("d"));
  const std::string other = file("other.csv", "3,4\n");
  ASSERT_TRUE(open().begin_work({"d", keys(other)}, gaussian(0.1), "", "study", {}).ok());
  EXPECT_THAT(owners(other), ElementsAre("d"));
}

TEST_F(PayerTest, NoBudgetIsLeftForAnotherByNamingThat) {
  const std::string data = file("data.csv", "1,2\n");
  ASSERT_TRUE(open().create(budget("d", 1, 1e-6), keys(data)).ok());
  ASSERT_TRUE(open().create(budget("e", 1, 1e-6)).ok());
  ASSERT_TRUE(open().create_if_missing({.name = "unlimited", .limit = {}}).ok());
  for (const char* name : {"e", "unlimited"}) {
    const auto paid = open().reserve({name, keys(data)}, gaussian(0.1), "");
    ASSERT_FALSE(paid.ok());
    EXPECT_EQ(paid.error().code, ErrorCode::kBudgetRefused);
    EXPECT_THAT(paid.error().message, HasSubstr("data.csv belongs to the data set d"));
  }
  EXPECT_TRUE(open().reserve({"d", keys(data)}, gaussian(0.1), "").ok());
  EXPECT_TRUE(open().reserve({"unlimited", keys(file("other.csv", "3,4\n"))}, gaussian(0.1), "").ok());
  EXPECT_THAT(owners((folder_ / "other.csv").string()), IsEmpty()) << "without a budget there is nothing to leave";
}

TEST_F(PayerTest, OneFileIsTheListOfPeopleFromTheBeginningOrTheFirstCharge) {
  const std::string rows = file("x.csv", "1,2\n"), list = file("who.txt", "a\nb\n"), other = file("other.txt", "c\n");
  const auto paid = [&](const std::string& dataset, const std::string& people) {
    FileKeys files = *open().hash_files({rows, people});
    files.files[1].lists_people = true;
    PrivacyPlan plan = gaussian(0.01);
    plan.person = "who";
    return open().reserve({dataset, files}, plan, "").ok();
  };
  const auto made = [&](const char* name, const std::vector<std::string>& data) {
    DatasetBudget people = budget(name, 1, 1e-6);
    people.person = "who";
    ASSERT_TRUE(open().create(people, *open().hash_files(data)).ok());
  };
  made("stated", {rows, list});
  EXPECT_FALSE(paid("stated", rows)) << "a file of the data set, but not the list";
  EXPECT_FALSE(paid("stated", other));
  EXPECT_TRUE(paid("stated", list));
  remove_ledger();
  made("unstated", {rows});
  for (const std::string& people : {rows, list}) EXPECT_FALSE(paid("unstated", people));
  remove_ledger();
  made("bare", {});
  EXPECT_TRUE(paid("bare", list));
  for (const std::string& people : {rows, other}) EXPECT_FALSE(paid("bare", people));
  EXPECT_TRUE(paid("bare", list));
  EXPECT_THAT(query(path(), "UPDATE people SET content = 'x'"), HasSubstr("never changes"));
  EXPECT_THAT(query(path(), "DELETE FROM people"), HasSubstr("never deleted"));
}

// As the program before this one left it: files, of which any might be the list.
TEST_F(PayerTest, AnOlderDataSetSettlesItsListOnceAmongItsFiles) {
  const std::string rows = file("x.csv", "1,2\n"), list = file("list.txt", "a\nb\n"), other = file("other.txt", "c\n");
  DatasetBudget people = budget("d", 1, 1e-6);
  people.person = "who";
  ASSERT_TRUE(open().create(people, *open().hash_files({rows, list})).ok());
  ASSERT_TRUE(open().create(budget("rows", 1, 1e-6), keys(other)).ok());
  query(path(), "DROP TABLE people; DROP TABLE part; PRAGMA user_version = 4");
  const auto paid = [&](const std::string& named) {
    FileKeys files = keys(named);
    files.files[0].lists_people = true;
    PrivacyPlan plan = gaussian(0.01);
    plan.person = "who";
    return open().reserve({"d", files}, plan, "").ok();
  };
  EXPECT_EQ(query(path(), "PRAGMA user_version"), "4");
  EXPECT_FALSE(open().show("d")->frozen);
  EXPECT_EQ(query(path(), "SELECT count(*) FROM people"), "1") << "none of the data set of rows";
  EXPECT_FALSE(paid(other));
  EXPECT_TRUE(paid(list));
  EXPECT_FALSE(paid(rows));
  EXPECT_TRUE(paid(list));
}

TEST_F(PayerTest, AFileInAFolderIsKnownByItsPlaceAndItsBytes) {
  std::filesystem::create_directories(folder_ / "images");
  std::filesystem::create_directories(folder_ / "copies");
  const std::string image = file("images/1.png", "one"), second = file("images/2.jpg", "two");
  const std::string images = (folder_ / "images").string(), copies = (folder_ / "copies").string();
  ASSERT_TRUE(open().create(budget("d", 1, 1e-6), keys(images)).ok());
  EXPECT_EQ(query(path(), "SELECT count(*) FROM file"), "1");
  EXPECT_EQ(query(path(), "SELECT length(hashes) FROM part"), "128") << "of two files path and content";
  EXPECT_THAT(owners(image), ElementsAre("d"));
  EXPECT_THAT(owners(file("copies/x.png", "one")), ElementsAre("d"));
  EXPECT_THAT(owners(copies), ElementsAre("d"));
  file("copies/x.png", "another");
  EXPECT_THAT(owners(copies), IsEmpty());
  std::filesystem::create_symlink(second, folder_ / "copies" / "y.png");
  EXPECT_THAT(owners(copies), ElementsAre("d"));
  file("images/2.jpg", "three");
  EXPECT_THAT(owners(copies), ElementsAre("d")) << "a link into the folder";
  // A charge binds what is new, and no more.
  ASSERT_TRUE(open().reserve({"d", keys(images)}, gaussian(0.1), "").ok());
  EXPECT_EQ(query(path(), "SELECT group_concat(length(hashes)) FROM part"), "128,32");
  ASSERT_TRUE(open().reserve({"d", keys(images)}, gaussian(0.1), "").ok());
  EXPECT_EQ(query(path(), "SELECT count(*) FROM part"), "2");
  EXPECT_THAT(query(path(), "DELETE FROM part"), HasSubstr("never taken"));
  EXPECT_THAT(query(path(), "UPDATE part SET hashes = x''"), HasSubstr("never taken"));
}

TEST_F(PayerTest, TheLedgerKeepsNeitherPathNorPlainHash) {
  const std::string data = file("Miriam Hartmann.csv", "secret");
  ASSERT_TRUE(open().create(budget("d", 1, 1e-6), keys(data)).ok());
  std::ifstream in(path(), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(bytes.find("Hartmann"), std::string::npos);
  EXPECT_EQ(query(path(), "SELECT content FROM file"), *open().content_key(data));
}

}  // namespace
}  // namespace eigenveil::test
