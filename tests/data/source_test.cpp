// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/source.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

TEST(Source, AMissingFileADirectoryAndADeviceAreRefused) {
  const TempDir dir;
  expect_refusal(dir.file("nothing.csv"), {"no such file"});
  expect_refusal(dir.path().string(), {"is a directory without data files"});
  expect_refusal("/dev/zero", {"not a regular file"});
  expect_refusal(dir.write_file("file", "a\n1\n") + "/below", {"no such file"});
}

/// What comes through a named pipe that these bytes are written to.
Result<std::unique_ptr<RowSource>> through_pipe(const TempDir& dir, const std::string& bytes, std::thread& writer) {
  const std::string path = dir.file("pipe");
  EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
  writer = std::thread([path, bytes] { std::ofstream(path, std::ios::binary) << bytes; });
  return open_source(path, {.header = HeaderRule::kNo});
}

TEST(Source, APipeIsReadFromItsBeginningToItsEnd) {
  const TempDir dir;
  std::string text;  // longer than what is kept of a pipe to recognise it
  for (int i = 0; i < 50000; ++i) text += std::to_string(i) + ",1\n";
  std::thread writer;
  const auto source = through_pipe(dir, text, writer);
  ASSERT_TRUE(source.ok()) << source.error().message;
  std::size_t rows = 0;
  double sum = 0;
  RawBatch batch;
  do {
    ASSERT_TRUE((*source)->next(batch, 1000).ok());
    for (std::size_t i = 0; i < batch.rows; ++i) sum += batch.values[2 * i];
    rows += batch.rows;
  } while (batch.rows > 0);
  writer.join();
  EXPECT_EQ(rows, 50000U);
  EXPECT_EQ(sum, 49999.0 * 50000 / 2);
}

TEST(Source, APipeInAFolderOfPartsIsRefusedInsteadOfWaitedFor) {
  const TempDir dir;
  dir.write_file("1.csv", "1\n");
  ASSERT_EQ(::mkfifo(dir.file("2.csv").c_str(), 0600), 0);
  expect_refusal(dir.path().string(), {"'2.csv'", "no regular file"}, {.header = HeaderRule::kNo});
}

/// Runs in a child process and returns its exit code.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(Source, AFileWithoutReadPermissionIsRefused) {
  const TempDir dir;
  const std::string path = dir.write_file("secret.csv", "a\n1\n");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  const int code = in_child([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return 77;
    const auto source = open_source(path, {});
    if (source.ok() || source.error().code != ErrorCode::kBadInput) return 1;
    return source.error().message.find("no permission") != std::string::npos ? 0 : 2;
  });
  if (code == 77) GTEST_SKIP() << "cannot become an unprivileged user";
  EXPECT_EQ(code, 0);
}

TEST(Source, ReadingEndsQuietlyAndStaysAtTheEnd) {
  const TempDir dir;
  const auto source = open_source(dir.write_file("t.csv", "a\n1\n2\n"), named());
  ASSERT_TRUE(source.ok());
  RawBatch batch;
  ASSERT_TRUE((*source)->next(batch, 5).ok());
  EXPECT_EQ(batch.rows, 2U);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*source)->next(batch, 5).ok());
    EXPECT_EQ(batch.rows, 0U);
    EXPECT_TRUE(batch.values.empty());
  }
}

TEST(Source, AnErrorLeavesNoRowsInTheBatch) {
  const TempDir dir;
  const auto source = open_source(dir.write_file("t.csv", "a\n1\nx\n"), named());
  ASSERT_TRUE(source.ok());
  RawBatch batch;
  EXPECT_FALSE((*source)->next(batch, 5).ok());
  EXPECT_EQ(batch.rows, 0U);
  EXPECT_TRUE(batch.values.empty());
}

TEST(Source, ZipArchivesWithoutArraysAreRefused) {
  const std::string path = shared_data("dota2Dataset.zip");
  if (path.empty()) GTEST_SKIP() << "no shared data sets beside this checkout";
  expect_refusal(path, {"no .npy array"});
}

/// Peak resident memory, in bytes, that reading the file adds to a fresh process.
std::size_t memory_of_reading(const std::string& path) {
  const auto peak = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss);
  };
  const std::size_t before = peak();
  const auto source = open_source(path, {.header = HeaderRule::kNo});
  RawBatch batch;
  do {
    if (!source.ok() || !(*source)->next(batch, 1000).ok()) return SIZE_MAX;
  } while (batch.rows > 0);
  return (peak() - before) * 1024;
}

// 100 columns x 1000 rows of doubles are 0.8 MB per batch; the files have 40 MB and more.
TEST(Source, MemoryDoesNotGrowWithTheFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer keeps what was freed";
#endif
  const TempDir dir;
  constexpr std::size_t kBytes = std::size_t{102'400} * 102 * sizeof(float);
  const std::string zeros(kBytes, '\0');
  dir.write_file("c.npy", npy("<f4", "(102400, 102)", zeros));
  dir.write_file("f.npy", npy("<f4", "(102400, 102)", zeros, true));
  std::string row;
  for (int i = 0; i < 100; ++i) row += i == 0 ? "0.125" : ",0.125";
  std::string text;
  while (text.size() < kBytes) text += row + "\n";
  dir.write_file("t.csv", text);
  dir.write_file("t.csv.gz", gzip(text));
  for (const char* name : {"c.npy", "f.npy", "t.csv", "t.csv.gz"}) {
    const std::string path = dir.file(name);
    EXPECT_EQ(in_child([&] { return memory_of_reading(path) < (std::size_t{8} << 20) ? 0 : 1; }), 0) << name;
  }
}

}  // namespace
}  // namespace eigenveil::test
