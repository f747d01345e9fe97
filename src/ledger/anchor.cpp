// SPDX-License-Identifier: Apache-2.0
#include "anchor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "eigenveil/base/atomic_file.hpp"

namespace eigenveil::ledger {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::size_t kLength = kDigits + 1 + 2 * sizeof(Checksum) + 1;  // within one sector: written whole or not

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

Error anchor_failed(const std::string& path) {
  return internal_error(fmt::format(
      "{}: cannot be written ({}), so that an older copy of the ledger could not be told from this one. Nothing is "
      "answered; what was charged stays charged. Check the disk and the permissions, and run again.",
      path, std::strerror(errno)));
}

Mark parse_mark(const std::string& text) {
  Mark unknown;
  unknown.checksum.fill(0xff);
  if (text.empty()) return {};  // killed before the first mark was written
  Mark mark;
  const char* const end = text.data() + kDigits;
  if (text.size() != kLength || std::from_chars(text.data(), end, mark.generation).ptr != end) return unknown;
  std::size_t bytes = 0;
  const int bad = sodium_hex2bin(mark.checksum.data(), mark.checksum.size(), end + 1, 2 * sizeof(Checksum), nullptr,
                                 &bytes, nullptr);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  return bad == 0 && bytes == sizeof(Checksum) && mark.generation < kMost ? mark : unknown;
}

Result<Mark> read_mark(int descriptor, const std::string& path) {
  std::string text(kLength + 1, '\0');
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  if (got < 0) return anchor_failed(path);
  text.resize(got);
  return parse_mark(text);
}

}  // namespace

Result<Mark> read_anchor(const std::string& path, bool begun) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno != ENOENT) return anchor_failed(path);
  std::error_code ignored;
  if (file.get() < 0 && begun && std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored)))
    return bad_input(
        fmt::format("{}: is a link to a file that is not there: bring its disk back. Nothing was changed.", path));
  if (file.get() < 0) return Mark{};
  if (::flock(file.get(), LOCK_SH) != 0) return anchor_failed(path);
  return read_mark(file.get(), path);
}

Status raise_anchor(const std::string& path, const Mark& mark) {
  std::error_code ignored;
  const bool fresh = !std::filesystem::exists(path, ignored);  // links followed, here and below
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0 || ::flock(file.get(), LOCK_EX) != 0) return anchor_failed(path);
  const auto there = EIGENVEIL_TRY(read_mark(file.get(), path));
  if (there.generation >= mark.generation) return {};
  const std::string text = fmt::format("{:0{}} {}\n", mark.generation, kDigits, to_hex(mark.checksum));
  if (::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fdatasync(file.get()) != 0)
    return anchor_failed(path);
  if (!fresh) return {};
  return sync_folder_of(std::filesystem::canonical(path, ignored).string());
}

}  // namespace eigenveil::ledger
