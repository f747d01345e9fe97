// SPDX-License-Identifier: Apache-2.0
// The keys of a study on disk: for their owner alone, moved on by a step that cannot be undone, and gone in the end.
#include "eigenveil/federation/keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace eigenveil::federation {
namespace {

StudyKeys met_keys() {
  StudyKeys keys = StudyKeys::draw();
  const Secret other = Secret::draw();
  for (const std::string name : {"b", "c"})
    keys.masks.push_back(
        *Mask::between(*keys.exchange, {"a", open_key(*keys.exchange)}, {name, open_key(Secret::draw())}, "hp", "hr"));
  keys.exchange.reset();
  return keys;
}

class Keys : public ::testing::Test {
 protected:
  std::string bytes() const { return test::read_file(path_); }
  test::TempDir folder_;
  std::string path_ = folder_.file("study.key");
  KeyFile file_{path_};
};

TEST_F(Keys, AreReadableByTheirOwnerAloneWhateverTheUmask) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(file_.save(StudyKeys::draw()).ok());
  ::umask(before);
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  ::chmod(path_.c_str(), 0644);
  const auto refused = file_.load();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("others can read"));
}

TEST_F(Keys, ComeBackAsTheyWereAndOldOnesAreOverwritten) {
  ASSERT_FALSE((*file_.load()).has_value());
  StudyKeys keys = StudyKeys::draw();
  const std::string exchange(keys.exchange->view());
  ASSERT_TRUE(file_.save(keys).ok());
  EXPECT_EQ((**file_.load()).exchange->view(), exchange);
  keys = met_keys();
  ASSERT_TRUE(file_.save(keys).ok());
  EXPECT_EQ(bytes().find(exchange), std::string::npos) << "the secret that pairs are made of is gone";
  for (std::uint32_t step = 1; step <= 5; ++step) {
    const std::string noise(keys.noise.view());
    const std::string pair(keys.masks[1].shared().view());
    keys.advance("h" + std::to_string(step));
    ASSERT_TRUE(file_.save(keys).ok());
    const StudyKeys read = **file_.load();
    EXPECT_EQ(read.index, step);
    EXPECT_EQ(read.noise.view(), keys.noise.view());
    EXPECT_EQ(read.data.view(), keys.data.view());
    ASSERT_EQ(read.masks.size(), 2U);
    EXPECT_EQ(read.masks[1].other(), "c");
    EXPECT_EQ(read.masks[1].shared().view(), keys.masks[1].shared().view());
    EXPECT_EQ(bytes().find(noise), std::string::npos) << step;
    EXPECT_EQ(bytes().find(pair), std::string::npos) << step;
  }
  file_.erase();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// A crash in the middle of a save leaves the keys before or those after.
TEST_F(Keys, ASaveThatWasCutShortLeavesTheOnesBefore) {
  StudyKeys keys = met_keys();
  ASSERT_TRUE(file_.save(keys).ok());
  const std::string before = bytes();
  const StudyKeys old = **file_.load();
  keys.advance("h1");
  ASSERT_TRUE(file_.save(keys).ok());
  const std::string after = bytes();
  for (const std::size_t cut : {1U, 20U, 60U, 100U, 200U}) {
    std::string torn = before;  // the new slot's first bytes are there
    torn.resize(32768);
    torn.replace(0, cut, after.substr(0, cut));
    std::ofstream(path_, std::ios::binary) << torn;
    const auto read = file_.load();
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ((**read).index, old.index);
  }
  std::ofstream(path_, std::ios::binary) << std::string(32768, 'x');
  EXPECT_FALSE(file_.load().ok());
}

}  // namespace
}  // namespace eigenveil::federation
