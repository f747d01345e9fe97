// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "eigenveil/base/types.hpp"
#include "format.hpp"
#include "unread_rows.hpp"

namespace eigenveil::data {
namespace {

/// Stretches of equal length at equal distances, or a single one.
class ShareSource final : public RowSource {
 public:
  /// `distance` 0: there is one stretch.
  ShareSource(std::unique_ptr<RowSource> source, std::size_t begin, std::size_t end, std::size_t distance)
      : source_(std::move(source)), begin_(begin), end_(end), distance_(distance) {}

  const std::vector<std::string>& columns() const override { return source_->columns(); }
  std::string part() const override { return source_->part(); }
  std::optional<std::size_t> rows_announced() const override {
    return distance_ == 0 ? std::optional(end_ - begin_) : std::nullopt;
  }
  double progress() const override {
    if (distance_ > 0) return source_->progress();
    if (position_ >= end_ || begin_ == end_) return 1.0;
    return static_cast<double>(std::max(position_, begin_) - begin_) / static_cast<double>(end_ - begin_);
  }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    batch.rows = 0;
    batch.values.clear();
    if (position_ == end_ && distance_ > 0) {
      begin_ += distance_;
      end_ += distance_;
    }
    if (position_ >= end_ || begin_ == end_) return {};
    if (position_ < begin_) {
      EIGENVEIL_TRY(source_->skip(begin_ - position_));
      position_ = begin_;
    }
    EIGENVEIL_TRY(source_->next(batch, std::min(max_rows, end_ - position_)));
    position_ += batch.rows;
    return {};
  }

 private:
  std::unique_ptr<RowSource> source_;
  std::size_t begin_;
  std::size_t end_;
  std::size_t distance_;
  std::size_t position_ = 0;
};

// ceil(n index / count): the first share is empty only if all are
std::uint64_t cut(std::uint64_t n, std::size_t index, std::size_t count) {
  return static_cast<std::uint64_t>((UInt128{n} * index + count - 1) / count);
}

// Behind the first line feed at or after the byte before `from`.
Result<std::uint64_t> line_start(const File& file, std::uint64_t from) {
  std::vector<char> block(std::size_t{1} << 16);
  std::uint64_t at = from - 1;
  while (true) {
    const Result<std::size_t> count = file.read_some(at, block.data(), block.size());
    if (!count.ok()) return count.error();
    if (*count == 0) return file.size();
    const auto* feed = static_cast<const char*>(std::memchr(block.data(), '\n', *count));
    if (feed != nullptr) return at + static_cast<std::uint64_t>(feed - block.data()) + 1;
    at += *count;
  }
}

}  // namespace

std::unique_ptr<RowSource> share_of(std::unique_ptr<RowSource> source, const Share& share) {
  constexpr std::size_t kBlock = 256;
  if (const auto rows = source->rows_announced())
    return std::make_unique<ShareSource>(std::move(source), cut(*rows, share.index, share.count),
                                         cut(*rows, share.index + 1, share.count), 0);
  return std::make_unique<ShareSource>(std::move(source), share.index * kBlock, (share.index + 1) * kBlock,
                                       share.count * kBlock);
}

Table shared(Table table, const Share& share) {
  if (share.count == 1) return table;
  const std::string name = table.name();
  FileColumns columns = table.columns();
  return table_of(
      name, std::move(columns),
      [table = std::move(table), share](const Selection& /*selection*/, const SourceOptions& options) mutable
      -> Result<std::unique_ptr<RowSource>> { return share_of(EIGENVEIL_TRY(table.take(options)), share); });
}

Result<ByteRange> lines_of(const File& file, const Share& share) {
  const auto start = [&](std::size_t index) -> Result<std::uint64_t> {
    if (index == 0) return std::uint64_t{0};
    if (index == share.count) return file.size();
    return line_start(file, cut(file.size(), index, share.count));
  };
  const auto begin = start(share.index);
  if (!begin.ok()) return begin.error();
  const auto end = start(share.index + 1);
  if (!end.ok()) return end.error();
  return ByteRange{*begin, *end};
}

}  // namespace eigenveil::data

namespace eigenveil {

Status RowSource::skip(std::size_t rows) {
  constexpr std::size_t kAtOnce = 1024;
  RawBatch forgotten;
  while (rows > 0) {
    EIGENVEIL_TRY(next(forgotten, std::min(rows, kAtOnce)));
    if (forgotten.rows == 0) break;
    rows -= forgotten.rows;
  }
  return {};
}

}  // namespace eigenveil
