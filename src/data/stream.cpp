#include "stream.hpp"

#include <fmt/format.h>

#include <utility>

namespace eigenveil::data {
namespace {

class FileStream final : public ByteStream {
 public:
  explicit FileStream(FilePtr file) : file_(std::move(file)) {}

  Result<std::size_t> read(char* to, std::size_t size) override {
    Result<std::size_t> count = file_->read_some(offset_, to, size);
    if (count.ok()) offset_ += *count;
    return count;
  }
  double progress() const override {
    return offset_ >= file_->size() ? 1.0 : static_cast<double>(offset_) / static_cast<double>(file_->size());
  }
  const std::string& name() const override { return file_->path(); }

 private:
  FilePtr file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> file_stream(FilePtr file) { return std::make_unique<FileStream>(std::move(file)); }

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
