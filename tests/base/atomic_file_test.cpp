// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace eigenveil::test;  // NOLINT(google-build-using-namespace)

TEST(AtomicFile, HasThePermissionsOfAnyFileTheUserMakesOrIsItsOwnersAlone) {
  const TempDir folder;
  const mode_t before = umask(027);
  const auto written = write_file(folder.file("t"), "x");
  const auto secret = write_file(folder.file("s"), "x", {.readers = Readers::kOwner});
  umask(before);
  ASSERT_TRUE(written.ok() && secret.ok());
  struct stat status {};
  ASSERT_EQ(stat(folder.file("t").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
  ASSERT_EQ(stat(folder.file("s").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(AtomicFile, ReplacesAnOlderFileAndLeavesNoTemporary) {
  const TempDir folder;
  folder.write_file("t", "old");
  ASSERT_TRUE(write_file(folder.file("t"), "new").ok());
  EXPECT_EQ(read_file(folder.file("t")), "new");
  EXPECT_THAT(folder.names(), ElementsAre("t"));
}

void expect_usage(const Status& status, const std::string& words) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  EXPECT_THAT(status.error().message, HasSubstr(words));
}

TEST(AtomicFile, IsNeitherWrittenThroughALinkNorInItsPlace) {
  const TempDir folder;
  folder.write_file("target", "old");
  ASSERT_EQ(symlink("target", folder.file("link").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", folder.file("loose").c_str()), 0);
  for (const char* name : {"link", "loose"}) expect_usage(write_file(folder.file(name), "new"), "is a link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")) && std::filesystem::is_symlink(folder.file("loose")));
  EXPECT_EQ(read_file(folder.file("target")), "old");
  EXPECT_FALSE(std::filesystem::exists(folder.file("nowhere")));
}

// A link that takes the name while the file is being written: the name is its own again, and its target stays.
TEST(AtomicFile, TakesTheNameOfALinkThatCameLaterAndLeavesItsTarget) {
  const TempDir folder;
  folder.write_file("target", "old");
  auto file = AtomicFile::create(folder.file("t"));
  ASSERT_TRUE(file.ok() && file->append("new").ok());
  ASSERT_EQ(symlink("target", folder.file("t").c_str()), 0);
  ASSERT_TRUE(file->commit().ok());
  EXPECT_FALSE(std::filesystem::is_symlink(folder.file("t")));
  EXPECT_EQ(read_file(folder.file("t")), "new");
  EXPECT_EQ(read_file(folder.file("target")), "old");
}

// Whoever writes, and whatever: a page, a model or scores in its place would be the end of what it knows.
TEST(AtomicFile, IsNeverWrittenOverALedger) {
  const TempDir folder;
  for (const std::string name : {"l.db", "l.db.key", "l.db.anchor", "other.key"}) folder.write_file(name, "kept");
  for (const std::string name : {"l.db", "l.db.key", "l.db.anchor", "l.db.lock", "l.db-journal"}) {
    expect_usage(write_file(folder.file(name), "new"), "belongs to a ledger");
    expect_usage(check_writable(folder.file(name)), "belongs to a ledger");
  }
  EXPECT_EQ(read_file(folder.file("l.db")), "kept");
  EXPECT_TRUE(write_file(folder.file("other.key"), "new").ok()) << "a key of something else";
  EXPECT_TRUE(write_file(folder.file("l.db.npz"), "new").ok());
}

TEST(AtomicFile, IsRefusedWhereNoFileCanBe) {
  const TempDir folder;
  folder.write_file("file", "x");
  expect_usage(write_file(folder.file("file/t"), "x"), "folder does not exist");
  expect_usage(write_file(folder.file("none/t"), "x"), "folder does not exist");
  expect_usage(write_file(folder.file("."), "x"), "is a directory");
  expect_usage(write_file("", "x"), "empty");
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_usage(write_file(folder.file("pipe"), "x"), "not a regular file");
  expect_usage(check_writable(folder.file("none/t")), "folder does not exist");
  EXPECT_TRUE(check_writable(folder.file("t")).ok());
  EXPECT_THAT(folder.names(), ::testing::UnorderedElementsAre("file", "pipe"));
}

/// Runs `action` in a child process and returns its exit code.
template <class Action>
int in_child(const Action& action) {
  const pid_t child = fork();
  if (child == 0) _exit(action());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(AtomicFile, SurvivesADiskThatFillsUpByLeavingTheOldFileAndNothingElse) {
  const TempDir folder;
  folder.write_file("a", "old");
  const int code = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 100;
    const auto written = write_file(folder.file("a"), std::string(80000, 'x'));
    if (written.ok()) return 101;
    if (written.error().message.find("nothing was left behind") == std::string::npos) return 102;
    return static_cast<int>(written.error().code);
  });
  EXPECT_EQ(code, static_cast<int>(ErrorCode::kInternal));
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(read_file(folder.file("a")), "old");
}

TEST(AtomicFile, IsNeverPartialWhenTheProcessIsKilledWhileWriting) {
  const TempDir folder;
  folder.write_file("a", "old");
  in_child([&] {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);  // SIGXFSZ kills the child in the middle of the file
    return write_file(folder.file("a"), std::string(80000, 'x')).ok() ? 1 : 2;
  });
  EXPECT_EQ(read_file(folder.file("a")), "old");
  ASSERT_TRUE(write_file(folder.file("a"), "new").ok()) << "what a killed process left is in the way";
}

constexpr FileModes kNew{.existing = Existing::kRefuse};

TEST(AtomicFile, NeverTakesThePlaceOfAnotherWhereItMustBeNew) {
  const TempDir folder;
  ASSERT_TRUE(write_file(folder.file("t"), "first", kNew).ok());
  expect_usage(write_file(folder.file("t"), "second", kNew), "never overwritten");
  EXPECT_EQ(read_file(folder.file("t")), "first");
  ASSERT_EQ(symlink("nowhere", folder.file("link").c_str()), 0);
  expect_usage(write_file(folder.file("link"), "x", kNew), "never overwritten");
  EXPECT_THAT(folder.names(), ::testing::UnorderedElementsAre("t", "link"));
}

TEST(AtomicFile, ThatMustBeNewIsRefusedThoughItsNameIsTakenAtTheLastMoment) {
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("t"), kNew);
  ASSERT_TRUE(file.ok());
  folder.write_file("t", "first");
  expect_usage(file->commit(), "never overwritten");
  EXPECT_EQ(read_file(folder.file("t")), "first");
}

TEST(AtomicFile, IsMadeByOneOfManyAtOnce) {
  const TempDir folder;
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      if (write_file(folder.file("t"), std::to_string(i), kNew).ok()) ++made;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_THAT(folder.names(), ElementsAre("t"));
}

}  // namespace
}  // namespace eigenveil
