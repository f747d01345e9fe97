#include "new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace eigenveil::federation {
namespace {

Error cannot_write(const std::string& path, int error) {
  if (error == EEXIST) return usage_error(fmt::format("{} exists already and is never overwritten", path));
  return usage_error(fmt::format("{} cannot be written ({})", path, std::generic_category().message(error)));
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Not every file system can refuse to replace; the caller has looked before.
bool rename_new(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  return (errno == EINVAL || errno == ENOSYS) && ::access(to, F_OK) != 0 && ::rename(from, to) == 0;
}

}  // namespace

Status write_new_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  std::string temporary = folder + "/.eigenveil-XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);  // mode 0600
  if (descriptor < 0) return cannot_write(path, errno);
  const bool written = write_all(descriptor, bytes) && ::fchmod(descriptor, mode) == 0 && ::fsync(descriptor) == 0;
  int failure = written ? 0 : errno;
  ::close(descriptor);
  if (failure == 0 && !rename_new(temporary.c_str(), path.c_str())) failure = errno;
  if (failure != 0) {
    ::unlink(temporary.c_str());
    return cannot_write(path, failure);
  }
  if (const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
    ::fsync(opened);
    ::close(opened);
  }
  return {};
}

}  // namespace eigenveil::federation
