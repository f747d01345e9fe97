#include "file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace eigenveil::data {
namespace {

Error system_refusal(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR) return bad_input(fmt::format("{}: there is no such file", path));
  if (code == EACCES || code == EPERM)
    return bad_input(fmt::format("{}: no permission to read this file; ask its owner or change its mode", path));
  return bad_input(fmt::format("{}: cannot be read: {}", path, std::strerror(code)));  // NOLINT(concurrency-mt-unsafe)
}

Status check_regular(const std::string& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return bad_input(fmt::format("{}: is a directory; name a file in it", path));
  if (!S_ISREG(info.st_mode))
    return bad_input(
        fmt::format("{}: is not a regular file (a pipe, socket or device?); copy the data to a file", path));
  return {};
}

}  // namespace

File::File(std::string path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

File::~File() { ::close(descriptor_); }

Result<FilePtr> File::open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_refusal(path, errno);
  EIGENVEIL_TRY(check_regular(path, info));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_refusal(path, errno);
  if (::fstat(descriptor, &info) != 0) {
    const int code = errno;
    ::close(descriptor);
    return system_refusal(path, code);
  }
  auto file = std::make_shared<const File>(path, descriptor, static_cast<std::uint64_t>(info.st_size));
  EIGENVEIL_TRY(check_regular(path, info));  // the name may have changed hands since stat
  return FilePtr(std::move(file));
}

Result<std::size_t> File::read_some(std::uint64_t offset, char* to, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_refusal(path_, errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
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
