#include "atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "eigenveil/release/npz.hpp"

namespace eigenveil {
namespace {

Error cannot_write(const std::string& path, int error) {
  const std::string what = std::generic_category().message(error);
  switch (error) {
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

/// Renaming over a device or a pipe would replace it, and renaming over a link would cut it off from its target.
Result<std::string> rename_target(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return path;
  if (S_ISDIR(status.st_mode)) return cannot_write(path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    return usage_error(fmt::format("{}: is not a regular file. Give the name of a new or a regular file.", path));
  }
  std::error_code failure;
  const auto target = std::filesystem::canonical(path, failure);
  if (failure) return cannot_write(path, failure.value());
  return target.string();
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string folder, std::string temporary, int descriptor)
    : path_(std::move(path)), folder_(std::move(folder)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::move(other.folder_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      end_(other.end_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path, FileMode mode) {
  if (path.empty() || path.back() == '/') return usage_error("The name of the output file is empty. Give a file name.");
  auto target = rename_target(path);
  if (!target.ok()) return target.error();
  const auto parent = std::filesystem::path(*target).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  constexpr int kAttempts = 1000;
  int failure = EEXIST;
  for (int attempt = 0; attempt < kAttempts && failure == EEXIST; ++attempt) {
    std::string temporary = fmt::format("{}/.eigenveil-{}-{}.tmp", folder, getpid(), attempt);
    const mode_t bits = mode == FileMode::kSecret ? 0600 : 0644;  // less the umask, like any file a user makes
    const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, bits);
    if (descriptor >= 0) return AtomicFile(*target, folder, std::move(temporary), descriptor);
    failure = errno;
  }
  return cannot_write(path, failure);
}

Status AtomicFile::write_at(std::int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return cannot_write(path_, written == 0 ? ENOSPC : errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
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
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  temporary_.clear();
  const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return {};  // a folder that may be written but not read: the rename stands, it cannot be fsynced
  const bool synced = fsync(folder) == 0 || errno == EINVAL;  // EINVAL: this file system has no fsync of folders
  close(folder);
  return synced ? Status() : cannot_write(path_, errno);
}

Status check_writable(const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file.ok()) return file.error();
  return {};
}

namespace {

Status write_whole(const std::string& path, const std::string& bytes, FileMode mode) {
  auto file = AtomicFile::create(path, mode);
  if (!file.ok()) return file.error();
  EIGENVEIL_TRY(file->append(bytes));
  return file->commit();
}

}  // namespace

Status write_text_file(const std::string& path, const std::string& text) {
  return write_whole(path, text, FileMode::kShared);
}

Status write_secret_file(const std::string& path, const std::string& bytes) {
  return write_whole(path, bytes, FileMode::kSecret);
}

}  // namespace eigenveil
