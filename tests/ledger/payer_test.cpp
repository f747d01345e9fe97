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
