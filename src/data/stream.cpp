// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace eigenveil::data {
namespace {

class FileStream final : public ByteStream {
 public:
  FileStream(FilePtr file, std::uint64_t begin, std::uint64_t end)
      : file_(std::move(file)), begin_(begin), end_(end), offset_(begin) {}

  Result<std::size_t> read(char* to, std::size_t size) override {
    const std::uint64_t left = end_ - std::min(offset_, end_);
    Result<std::size_t> count = file_->read_some(offset_, to, std::min<std::uint64_t>(size, left));
    if (count.ok()) offset_ += *count;
    return count;
  }
  Status skip(std::uint64_t size) override {
    if (file_->is_pipe()) return ByteStream::skip(size);
    offset_ += size;
    return {};
  }
  double progress() const override {
    return offset_ >= end_ ? 1.0 : static_cast<double>(offset_ - begin_) / static_cast<double>(end_ - begin_);
  }
  const std::string& name() const override { return file_->path(); }

 private:
  FilePtr file_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t offset_;
};

}  // namespace

std::unique_ptr<ByteStream> file_stream(FilePtr file) {
  const std::uint64_t size = file->size();
  return file_stream(std::move(file), 0, size);
}

std::unique_ptr<ByteStream> file_stream(FilePtr file, std::uint64_t begin, std::uint64_t end) {
  return std::make_unique<FileStream>(std::move(file), begin, end);
}

Status ByteStream::skip(std::uint64_t size) {
  std::array<char, 65536> forgotten;
  while (size > 0) {
    const std::size_t piece = std::min<std::uint64_t>(size, forgotten.size());
    EIGENVEIL_TRY(read_exactly(*this, forgotten.data(), piece, "array"));
    size -= piece;
  }
  return {};
}

Result<std::size_t> read_up_to(ByteStream& stream, char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const Result<std::size_t> count = stream.read(to + done, size - done);
    if (!count.ok()) return count.error();
    if (*count == 0) break;
    done += *count;
  }
  return done;
}

Status read_exactly(ByteStream& stream, char* to, std::size_t size, const char* what) {
  const Result<std::size_t> done = read_up_to(stream, to, size);
  if (!done.ok()) return done.error();
  if (*done < size)
    return bad_input(fmt::format("{}: is truncated: its {} needs {} more bytes than the file has", stream.name(), what,
                                 size - *done));
  return {};
}

Status expect_end(ByteStream& stream) {
  char byte = 0;
  const Result<std::size_t> count = stream.read(&byte, 1);
  if (!count.ok()) return count.error();
  if (*count != 0)
    return bad_input(
        fmt::format("{}: goes on after the last row that its header announces; is it damaged?", stream.name()));
  return {};
}

}  // namespace eigenveil::data
