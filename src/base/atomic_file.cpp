// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace eigenveil {
namespace {

Error cannot_write(const std::string& path, int error) {
  const std::string what = std::generic_category().message(error);
  switch (error) {
    case EEXIST:
      return usage_error(
          fmt::format("{}: exists already and is never overwritten. Move it away or choose another name.", path));
    case ENOENT:
    case ENOTDIR:
      return usage_error(fmt::format(
          "{}: cannot be written, its folder does not exist. Create the folder or choose another path.", path));
    case EACCES:
    case EPERM:
    case EROFS:
      return usage_error(fmt::format("{}: cannot be written ({}). Choose a folder that you may write to.", path, what));
    case EISDIR:
      return usage_error(fmt::format("{}: is a directory. Give the name of a file.", path));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return internal_error(fmt::format(
          "{}: could not be written ({}); nothing was left behind. Free some space and run again.", path, what));
    default:
      return internal_error(
          fmt::format("{}: could not be written ({}); nothing was left behind. Choose another path.", path, what));
  }
}

bool is_there(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

/// By its neighbours: to open a database that this process may have open elsewhere would drop its locks.
bool is_of_a_ledger(const std::string& path) {
  for (const std::string_view part : kLedgerFiles) {
    if (!path.ends_with(part)) continue;
    const std::string ledger = path.substr(0, path.size() - part.size());
    if (is_there(ledger) && is_there(ledger + ".key") && is_there(ledger + ".anchor")) return true;
  }
  return false;
}

/// Renaming over a device or a pipe would replace it. A link is neither replaced nor followed: whoever put it there
/// would decide which file is lost.
Status check_replaceable(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (S_ISDIR(status.st_mode)) return cannot_write(path, EISDIR);
  if (S_ISLNK(status.st_mode))
    return usage_error(
        fmt::format("{}: is a link, and nothing is written through one. Give the name of the file that it leads to, or "
                    "another name.",
                    path));
  if (!S_ISREG(status.st_mode))
    return usage_error(fmt::format("{}: is not a regular file. Give the name of a new or a regular file.", path));
  return {};
}

// Both refuse a name that is taken, a link to nowhere too; not every file system can do the first.
bool name_new(const char* temporary, const char* path) {
  if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return true;
  return (errno == EINVAL || errno == ENOSYS) && link(temporary, path) == 0 && unlink(temporary) == 0;
}

std::string folder_of(const std::string& file) {
  const auto parent = std::filesystem::path(file).parent_path();
  return parent.empty() ? std::string(".") : parent.string();
}

// 0, or what went wrong. EINVAL: this file system has no fsync of folders.
int sync(const std::string& folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return errno;
  const int failure = fsync(opened) == 0 || errno == EINVAL ? 0 : errno;
  close(opened);
  return failure;
}

bool is_taken(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor, Existing existing)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor), existing_(existing) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      existing_(other.existing_),
      end_(other.end_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path, FileModes modes) {
  if (path.empty() || path.back() == '/') return usage_error("The name of the output file is empty. Give a file name.");
  if (is_of_a_ledger(path))
    return usage_error(fmt::format(
        "{}: belongs to a ledger and is never written over. Nothing was written; choose another name.", path));
  const bool fresh = modes.existing == Existing::kRefuse;
  if (fresh && is_taken(path)) return cannot_write(path, EEXIST);
  if (!fresh) EIGENVEIL_TRY(check_replaceable(path));
  const mode_t bits = modes.readers == Readers::kOwner ? 0600 : 0644;  // less the umask, like any file a user makes
  constexpr int kAttempts = 1000;
  int failure = EEXIST;
  for (int attempt = 0; attempt < kAttempts && failure == EEXIST; ++attempt) {
    std::string temporary = fmt::format("{}/{}{}-{}.tmp", folder_of(path), kTemporary, getpid(), attempt);
    const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, bits);
    if (descriptor >= 0) return AtomicFile(path, std::move(temporary), descriptor, modes.existing);
    failure = errno;
  }
  return cannot_write(path, failure == EEXIST ? EBUSY : failure);
}

Status AtomicFile::write_at(std::int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return cannot_write(path_, written == 0 ? ENOSPC : errno);
    bytes.remove_prefix(written);
    offset += written;
  }
  return {};
}

Status AtomicFile::append(std::string_view bytes) {
  EIGENVEIL_TRY(write_at(end_, bytes));
  end_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

Status AtomicFile::overwrite(std::int64_t offset, std::string_view bytes) { return write_at(offset, bytes); }

Status AtomicFile::commit() {
  if (fsync(descriptor_) != 0) return cannot_write(path_, errno);
  if (close(std::exchange(descriptor_, -1)) != 0) return cannot_write(path_, errno);
  const bool named = existing_ == Existing::kRefuse ? name_new(temporary_.c_str(), path_.c_str())
                                                    : rename(temporary_.c_str(), path_.c_str()) == 0;
  if (!named) return cannot_write(path_, errno);
  temporary_.clear();
  const int failure = sync(folder_of(path_));
  return failure == 0 || failure == EACCES ? Status() : cannot_write(path_, failure);  // EACCES: it may not be read
}

Status write_file(const std::string& path, std::string_view bytes, FileModes modes) {
  auto file = EIGENVEIL_TRY(AtomicFile::create(path, modes));
  EIGENVEIL_TRY(file.append(bytes));
  return file.commit();
}

Status check_writable(const std::string& path) {
  EIGENVEIL_TRY(AtomicFile::create(path));
  return {};
}

Status sync_folder_of(const std::string& file) {
  const int failure = sync(folder_of(file));
  if (failure == 0) return {};
  return internal_error(
      fmt::format("{}: its folder could not be written to disk ({}). Check its permissions and the disk.", file,
                  std::generic_category().message(failure)));
}

}  // namespace eigenveil
