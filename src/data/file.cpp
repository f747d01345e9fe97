// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace eigenveil::data {
namespace {

Error system_refusal(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR) return bad_input(fmt::format("{}: there is no such file", path));
  if (code == EACCES || code == EPERM)
    return bad_input(fmt::format("{}: no permission to read this file; ask its owner or change its mode", path));
  return bad_input(fmt::format("{}: cannot be read: {}", path, std::strerror(code)));  // NOLINT(concurrency-mt-unsafe)
}

constexpr std::size_t kHead = std::size_t{1} << 16;  // enough to recognise what is in it, packed or not

Status check_kind(const std::string& path, const struct stat& info, bool is_pipe) {
  if (S_ISDIR(info.st_mode)) return bad_input(fmt::format("{}: is a directory; name a file in it", path));
  if (is_pipe ? !S_ISFIFO(info.st_mode) : !S_ISREG(info.st_mode))
    return bad_input(
        fmt::format("{}: is not a regular file (a pipe, socket or device?); copy the data to a file", path));
  return {};
}

}  // namespace

File::File(std::string path, int descriptor, std::uint64_t size, bool is_pipe)
    : path_(std::move(path)), descriptor_(descriptor), size_(size), is_pipe_(is_pipe) {}

File::~File() { ::close(descriptor_); }

Result<FilePtr> File::open(const std::string& path, Pipes pipes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_refusal(path, errno);
  const bool is_pipe = pipes == Pipes::kRead && S_ISFIFO(info.st_mode);
  EIGENVEIL_TRY(check_kind(path, info, is_pipe));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_pipe ? 0 : O_NONBLOCK));
  if (descriptor < 0) return system_refusal(path, errno);
  if (::fstat(descriptor, &info) != 0) {
    const int code = errno;
    ::close(descriptor);
    return system_refusal(path, code);
  }
  const auto size = is_pipe ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(info.st_size);
  auto file = std::make_shared<const File>(path, descriptor, size, is_pipe);
  EIGENVEIL_TRY(check_kind(path, info, is_pipe));  // the name may have changed hands since stat
  if (is_pipe) {
    file->head_.resize(kHead);
    file->head_.resize(EIGENVEIL_TRY(file->read_descriptor(0, file->head_.data(), kHead)));
    file->position_ = file->head_.size();
  }
  return FilePtr(std::move(file));
}

Result<int> File::duplicate() const {
  const int descriptor = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return system_refusal(path_, errno);
  return descriptor;
}

Result<std::size_t> File::read_some(std::uint64_t offset, char* to, std::size_t size) const {
  return is_pipe_ ? read_pipe(offset, to, size) : read_descriptor(offset, to, size);
}

Result<std::size_t> File::read_pipe(std::uint64_t offset, char* to, std::size_t size) const {
  if (offset < head_.size()) {
    const std::size_t kept = std::min(size, head_.size() - offset);
    std::copy_n(head_.data() + offset, kept, to);
    return kept;
  }
  if (offset != position_)
    return bad_input(fmt::format("{}: is a pipe, whose bytes come once; copy the data to a file", path_));
  const std::size_t count = EIGENVEIL_TRY(read_descriptor(offset, to, size));
  position_ += count;
  return count;
}

Result<std::size_t> File::read_descriptor(std::uint64_t offset, char* to, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = is_pipe_ ? ::read(descriptor_, to + done, size - done)
                                   : ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_refusal(path_, errno);
    if (count == 0) break;
    done += count;
  }
  return done;
}

Status File::read_all(std::uint64_t offset, char* to, std::size_t size) const {
  const Result<std::size_t> done = read_some(offset, to, size);
  if (!done.ok()) return done.error();
  if (*done < size)
    return bad_input(
        fmt::format("{}: is truncated: {} bytes expected at offset {}, {} found", path_, size, offset, *done));
  return {};
}

}  // namespace eigenveil::data
