// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "stream.hpp"

namespace eigenveil::data {
namespace {

constexpr std::size_t kInputBlock = std::size_t{1} << 18;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip header and trailer expected

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(FilePtr file) : file_(std::move(file)), input_(kInputBlock) {
    ready_ = inflateInit2(&zlib_, kGzipWindow) == Z_OK;
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() override {
    if (ready_) inflateEnd(&zlib_);
  }

  Result<std::size_t> read(char* to, std::size_t size) override {
    if (!ready_) return internal_error("zlib could not start: out of memory");
    zlib_.next_out = reinterpret_cast<Bytef*>(to);
    zlib_.avail_out = static_cast<uInt>(std::min(size, std::size_t{1} << 30));
    const uInt wanted = zlib_.avail_out;
    while (zlib_.avail_out == wanted && !ended_) EIGENVEIL_TRY(step());
    return wanted - zlib_.avail_out;
  }
  double progress() const override {
    return offset_ >= file_->size() ? 1.0 : static_cast<double>(offset_) / static_cast<double>(file_->size());
  }
  const std::string& name() const override { return file_->path(); }

 private:
  Status fill() {
    if (zlib_.avail_in > 0) return {};
    const Result<std::size_t> count = file_->read_some(offset_, input_.data(), input_.size());
    if (!count.ok()) return count.error();
    offset_ += *count;
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(*count);
    return {};
  }

  Status step() {
    EIGENVEIL_TRY(fill());
    if (zlib_.avail_in == 0)
      return bad_input(fmt::format("{}: the gzip data end too early: the file is truncated; copy it again", name()));
    const int code = inflate(&zlib_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) return next_member();
    if (code == Z_MEM_ERROR) return internal_error("zlib ran out of memory");
    if (code != Z_OK && code != Z_BUF_ERROR)
      return bad_input(fmt::format("{}: the gzip data are damaged ({}); copy the file again", name(),
                                   zlib_.msg != nullptr ? zlib_.msg : "bad data"));
    return {};
  }

  /// RFC 1952, 2.2: a gzip file is a series of members. Zero padding at the end (tape blocks) is common and harmless.
  Status next_member() {
    bool padding = false;
    while (true) {
      EIGENVEIL_TRY(fill());
      if (zlib_.avail_in == 0) {
        ended_ = true;
        return {};
      }
      if (*zlib_.next_in != 0) break;
      padding = true;
      ++zlib_.next_in;
      --zlib_.avail_in;
    }
    if (padding || *zlib_.next_in != 0x1f)
      return bad_input(fmt::format("{}: bytes that are not gzip follow the gzip data; is the file damaged?", name()));
    inflateReset(&zlib_);
    return {};
  }

  FilePtr file_;
  std::vector<char> input_;
  z_stream zlib_{};
  std::uint64_t offset_ = 0;
  bool ready_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> gzip_stream(FilePtr file) { return std::make_unique<GzipStream>(std::move(file)); }

}  // namespace eigenveil::data
