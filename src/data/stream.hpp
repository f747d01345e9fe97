// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "file.hpp"

namespace eigenveil::data {

/// Bytes in order, plain or unpacked on the way.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Up to `size` bytes; 0 means the end, and only the end.
  virtual Result<std::size_t> read(char* to, std::size_t size) = 0;
  /// Moves over that many bytes, which must be there. Reads and forgets them unless it can seek.
  virtual Status skip(std::uint64_t size);
  /// Share of the file consumed so far, in [0, 1].
  virtual double progress() const = 0;
  /// What messages call it: the path, for an archive with the member.
  virtual const std::string& name() const = 0;
};

std::unique_ptr<ByteStream> file_stream(FilePtr file);
/// The bytes from `begin` up to but not including `end`.
std::unique_ptr<ByteStream> file_stream(FilePtr file, std::uint64_t begin, std::uint64_t end);
/// Unpacks gzip, several members after each other included, and checks every length and checksum.
std::unique_ptr<ByteStream> gzip_stream(FilePtr file);

/// As many of `size` bytes as the stream still has.
Result<std::size_t> read_up_to(ByteStream& stream, char* to, std::size_t size);
/// Exactly `size` bytes, or an error that says that `what` is cut off.
Status read_exactly(ByteStream& stream, char* to, std::size_t size, const char* what);
/// An error if bytes are left. Also what makes gzip and zip compare their checksum.
Status expect_end(ByteStream& stream);

}  // namespace eigenveil::data
