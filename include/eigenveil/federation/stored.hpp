#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "eigenveil/base/types.hpp"
#include "wire.pb.h"

namespace eigenveil::federation {

/// One ask and its answer on disk, there completely or not at all: at a site what it sent, at the coordinator a total.
struct Stored {
  wire::v1::Ask ask;
  wire::v1::Answer answer;
  std::string path;
  std::uint64_t offset;  ///< of the integers
};

/// Makes a folder (0700) and those above it.
Status make_folder(const std::string& path);

/// Held by one process at a time, and let go when it ends, however it ends.
class FolderLock {
 public:
  static Result<FolderLock> take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// Durable before it returns.
Status store(const std::string& path, const wire::v1::Ask& ask, const wire::v1::Answer& answer,
             const std::vector<Int128>& values);
Status store(const std::string& path, const google::protobuf::Message& message);

/// Nothing if there is no such file; an error if it is damaged.
Result<std::optional<Stored>> load(const std::string& path);
/// Whether there is such a file, which is then in `message`.
Result<bool> load(const std::string& path, google::protobuf::Message& message);

/// The integers, in parts of at most a megabyte: 16 bytes each, little-endian.
Status for_each_part(const Stored& stored, const std::function<Status(const std::string& bytes)>& use);

}  // namespace eigenveil::federation
