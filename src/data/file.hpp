// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil::data {

/// A file, open for reading. Reads name their offset, so readers that share a file cannot disturb each other. Of a
/// pipe, whose bytes come once, the first ones are kept to be recognised; behind them reads must follow each other.
class File {
 public:
  enum class Pipes : std::uint8_t { kRefused, kRead };
  /// Refuses directories and devices before opening them, and pipes: opening one waits for its writer.
  static Result<std::shared_ptr<const File>> open(const std::string& path, Pipes pipes = Pipes::kRefused);

  File(std::string path, int descriptor, std::uint64_t size, bool is_pipe);
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  /// Of a pipe more than any file has.
  std::uint64_t size() const { return size_; }
  bool is_pipe() const { return is_pipe_; }

  /// Another descriptor of it, for a library that reads and closes it.
  Result<int> duplicate() const;

  /// Up to `size` bytes; fewer only at the end of the file, or of what is kept of a pipe; none: the end.
  Result<std::size_t> read_some(std::uint64_t offset, char* to, std::size_t size) const;
  /// Exactly `size` bytes, or an error that says the file ends early.
  Status read_all(std::uint64_t offset, char* to, std::size_t size) const;

 private:
  Result<std::size_t> read_descriptor(std::uint64_t offset, char* to, std::size_t size) const;
  Result<std::size_t> read_pipe(std::uint64_t offset, char* to, std::size_t size) const;

  std::string path_;
  int descriptor_;
  std::uint64_t size_;
  bool is_pipe_;
  mutable std::vector<char> head_;      ///< of a pipe: its first bytes
  mutable std::uint64_t position_ = 0;  ///< of a pipe: how many bytes came
};

using FilePtr = std::shared_ptr<const File>;

}  // namespace eigenveil::data
