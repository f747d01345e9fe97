// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/content_key.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

class ContentKeyTest : public LedgerTest {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return path.string();
  }
  // Under any names.
  static std::string content_key(const std::string& path, std::string_view key) {
    return content_keys(path, key)->whole;
  }
  const std::string key_ = std::string(32, 'k');
};

TEST_F(ContentKeyTest, DependsOnBytesAndKeyAndNothingElse) {
  const std::string long_text(5 << 20, 'x');
  const std::string a = content_key(file("a", long_text), key_);
  EXPECT_EQ(a.size(), 64U);
  EXPECT_EQ(content_key(file("b", long_text), key_), a);
  EXPECT_NE(content_key(file("c", long_text + "x"), key_), a);
  EXPECT_NE(content_key(file("a", long_text), std::string(32, 'l')), a);
  std::string flipped = long_text;
  flipped[3 << 20] ^= 1;
  EXPECT_NE(content_key(file("a", flipped), key_), a);
}

TEST_F(ContentKeyTest, OfAFolderIsThatOfItsFilesWhateverTheirNamesAndOrder) {
  file("one/a", "1");
  file("one/deep/b", "2");
  file("two/z", "2");
  file("two/y", "1");
  const auto folder = [&](const char* name) { return content_key((folder_ / name).string(), key_); };
  EXPECT_EQ(folder("one"), folder("two"));
  file("two/x", "");
  EXPECT_NE(folder("one"), folder("two"));
  file("single/a", "1");
  EXPECT_NE(folder("single"), content_key(file("a", "1"), key_));
}

TEST_F(ContentKeyTest, WithNamesOfAFolderIsThatOfWhichFileIsCalledWhat) {
  file("one/a", "1");
  file("one/b", "2");
  file("same/a", "1");
  file("same/b", "2");
  file("swapped/a", "2");
  file("swapped/b", "1");
  file("renamed/a", "1");
  file("renamed/_b", "2");
  const auto folder = [&](const char* name) { return *named_content_key((folder_ / name).string(), key_); };
  EXPECT_EQ(folder("one"), folder("same"));
  EXPECT_NE(folder("one"), folder("swapped"));
  EXPECT_NE(folder("one"), folder("renamed"));
  EXPECT_NE(folder("one"), content_key((folder_ / "one").string(), key_));
  EXPECT_EQ(*named_content_key(file("x", "1"), key_), content_key(file("y", "1"), key_));
}

TEST_F(ContentKeyTest, WhatALedgerPinsHasItsNames) {
  file("pairs/images", "1");
  file("pairs/tokens", "2");
  file("swapped/images", "2");
  file("swapped/tokens", "1");
  const Ledger ledger = open();
  const auto pinned = [&](const char* name) { return *ledger.content_key((folder_ / name).string()); };
  EXPECT_EQ(pinned("pairs"), pinned("pairs"));
  EXPECT_NE(pinned("pairs"), pinned("swapped"));
}

// Which file of a folder it is, and why, changes nothing.
TEST_F(ContentKeyTest, AFileOfAFolderThatCannotBeReadHasAFixedHash) {
  file("loop/a.png", "1");
  file("gone/a.png", "1");
  file("whole/a.png", "1");
  std::filesystem::create_symlink("b.png", folder_ / "loop" / "b.png");
  std::filesystem::create_symlink("nowhere", folder_ / "gone" / "b.png");
  const auto keys = [&](const char* name) { return content_keys((folder_ / name).string(), key_); };
  for (const char* name : {"loop", "gone"}) {
    ASSERT_TRUE(keys(name).ok()) << keys(name).error().message;
    EXPECT_EQ(keys(name)->parts.size(), 1U);
  }
  EXPECT_EQ(keys("loop")->whole, keys("gone")->whole);
  EXPECT_NE(keys("loop")->whole, keys("whole")->whole);
  EXPECT_TRUE(named_content_key((folder_ / "loop").string(), key_).ok());
}

TEST_F(ContentKeyTest, PartsAreTheFilesThatAReaderWouldOpen) {
  for (const char* name : {"a.csv", "1.png", "2.JPG", "_3.jpeg", "_SUCCESS", ".left", "_metadata"})
    file(std::string("folder/") + name, name);
  file("folder/empty.csv", "");
  const auto keys = content_keys((folder_ / "folder").string(), key_);
  std::set<std::string> names;
  for (const auto& part : keys->parts) names.insert(std::filesystem::path(part.path).filename());
  EXPECT_EQ(names, (std::set<std::string>{"a.csv", "1.png", "2.JPG", "_3.jpeg"}));
}

TEST_F(ContentKeyTest, WhatCannotBeReadIsRefusedInWords) {
  for (const std::string& path : {(folder_ / "absent").string(), std::string("/dev/zero")}) {
    const auto key = content_keys(path, key_);
    ASSERT_FALSE(key.ok());
    EXPECT_THAT(key.error().message, ::testing::HasSubstr(path));
  }
  EXPECT_FALSE(content_keys(file("a", ""), "short").ok());
}

}  // namespace
}  // namespace eigenveil::test
