#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil::data {

/// A regular file, open for reading. Reads name their offset, so readers that share a file cannot disturb each other.
class File {
 public:
  /// Refuses directories, pipes and devices before opening them: opening a pipe would wait for its writer.
  static Result<std::shared_ptr<const File>> open(const std::string& path);

  File(std::string path, int descriptor, std::uint64_t size);
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// Up to `size` bytes; fewer only at the end of the file.
  Result<std::size_t> read_some(std::uint64_t offset, char* to, std::size_t size) const;
  /// Exactly `size` bytes, or an error that says the file ends early.
  Status read_all(std::uint64_t offset, char* to, std::size_t size) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

using FilePtr = std::shared_ptr<const File>;

}  // namespace eigenveil::data
