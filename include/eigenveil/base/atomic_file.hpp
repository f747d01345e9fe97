// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Who may read a file: whoever the umask lets, or its owner alone.
enum class Readers : std::uint8_t { kShared, kOwner };
/// What becomes of a file that has the name already: it is replaced, or it stays and the new one is refused. A link is
/// never replaced, nor what it leads to.
enum class Existing : std::uint8_t { kReplace, kRefuse };

struct FileModes {
  Readers readers = Readers::kShared;
  Existing existing = Existing::kReplace;
};

/// What a ledger adds to its own name for the files beside it. Nothing here writes over any of them: whoever named one
/// as an output would lose what was spent.
inline constexpr std::array<std::string_view, 7> kLedgerFiles = {"",     "-journal", "-wal", "-shm",
                                                                 ".key", ".anchor",  ".lock"};

/// A file that appears under its name complete or not at all: written to a temporary file in the same folder (its name
/// begins with kTemporary), fsynced, renamed, and the folder fsynced. Destroyed before `commit`, it leaves nothing
/// behind. Of several processes that make one new file with Existing::kRefuse, one wins.
class AtomicFile {
 public:
  static constexpr std::string_view kTemporary = ".eigenveil-";

  static Result<AtomicFile> create(const std::string& path, FileModes modes = {});
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
  AtomicFile(std::string path, std::string temporary, int descriptor, Existing existing);
  Status write_at(std::int64_t offset, std::string_view bytes);

  std::string path_;
  std::string temporary_;  ///< empty once it has its name
  int descriptor_;
  Existing existing_;
  std::int64_t end_ = 0;
};

/// A whole file at once.
Status write_file(const std::string& path, std::string_view bytes, FileModes modes = {});

/// Tells whether a file could be written to `path`, before anything is spent on what would go into it.
Status check_writable(const std::string& path);

/// Has the name of a file that was made, or taken away, on disk before it returns. A folder that may not be read cannot
/// be fsynced: an error here, which `commit` lets pass.
Status sync_folder_of(const std::string& file);

}  // namespace eigenveil
