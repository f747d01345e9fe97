#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Who may read a file: whoever the umask lets, or its owner alone.
enum class FileMode { kShared, kSecret };

/// A file that appears under its name complete or not at all: written to a temporary file in the same folder,
/// fsynced, renamed, and the folder fsynced. Destroyed before `commit`, it leaves nothing behind.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path, FileMode mode = FileMode::kShared);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  Status append(std::string_view bytes);
  /// Overwrites bytes that were appended before; the end of the file stays the place of the next `append`.
  Status overwrite(std::int64_t offset, std::string_view bytes);
  Status commit();

 private:
  AtomicFile(std::string path, std::string folder, std::string temporary, int descriptor);
  Status write_at(std::int64_t offset, std::string_view bytes);

  std::string path_;
  std::string folder_;
  std::string temporary_;  ///< empty once renamed
  int descriptor_;
  std::int64_t end_ = 0;
};

/// The way to a file that holds a secret.
Status write_secret_file(const std::string& path, const std::string& bytes);

}  // namespace eigenveil
