// SPDX-License-Identifier: Apache-2.0
#include "csv_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "text.hpp"

namespace eigenveil::data {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

bool usable_delimiter(char c) {
  const bool in_numbers = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return !in_numbers && std::string_view("\"\r\n+-.").find(c) == std::string_view::npos;
}

}  // namespace

CsvText::CsvText(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)), buffer_(kBlock + 2) {}

Result<std::unique_ptr<CsvText>> CsvText::open(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  auto csv = std::make_unique<CsvText>(std::move(stream));
  EIGENVEIL_TRY(csv->take_dialect(options.delimiter));
  EIGENVEIL_TRY(csv->read_on());
  EIGENVEIL_TRY(csv->refuse_binary());
  switch (options.header) {
    case HeaderRule::kUnstated:
      return usage_error(
          fmt::format("{}: is its first line a line of column names? Nobody has stated it, and it is not guessed: give "
                      "`header` yes or `header` no, or a schema whose names are those of the first line",
                      csv->path()));
    case HeaderRule::kYes:
      EIGENVEIL_TRY(csv->read_names());
      break;
    case HeaderRule::kNo:
      EIGENVEIL_TRY(csv->count_fields(options));
      break;
  }
  return csv;
}

void CsvText::go_to(std::unique_ptr<ByteStream> stream) {
  stream_ = std::move(stream);
  begin_ = 0;
  end_ = 0;
  buffer_[0] = '\0';
  at_end_ = false;
  line_ = 1;
  rows_done_ = 0;
}

Status CsvText::read_on() {
  const std::size_t kept = end_ - begin_;
  if (at_end_)  // every row ends in a line feed, so only a quote can still be open
    return bad_input(fmt::format("{}: a quote is opened but never closed", place()));
  if (kept > kLongestRow)
    return bad_input(
        fmt::format("{}: this row is longer than {} MiB; is a quote never closed?", place(), kLongestRow >> 20));
  std::memmove(buffer_.data(), begin(), kept);
  begin_ = 0;
  end_ = kept;
  if (kept > buffer_.size() / 2) buffer_.resize(2 * buffer_.size());
  // two bytes stay free: a line feed that may be missing at the end of the file, and the NUL byte
  const Result<std::size_t> count = read_up_to(*stream_, buffer_.data() + end_, buffer_.size() - 2 - end_);
  if (!count.ok()) return count.error();
  end_ += *count;
  at_end_ = *count == 0 || end_ < buffer_.size() - 2;
  if (at_end_ && end_ > 0 && buffer_[end_ - 1] != '\n') buffer_[end_++] = '\n';
  buffer_[end_] = '\0';
  return {};
}

Status CsvText::refuse_binary() {
  constexpr std::size_t kLooked = 4096;
  const std::string_view head(begin(), std::min(kLooked, end_ - begin_));
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    return bad_input(fmt::format("{}: is UTF-16 text; save it as UTF-8", path()));
  if (head.starts_with("\xef\xbb\xbf")) begin_ += 3;
  for (char c : head.substr(0, head.find_first_of("\r\n"))) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f)
      return bad_input(
          fmt::format("{}: is not a text file (byte {:#04x} in line 1) and none of the binary formats that can be "
                      "read; expected CSV, NPY, NPZ, IDX or HDF5",
                      path(), byte));
  }
  return {};
}

Status CsvText::take_dialect(char wanted) {
  if (wanted == '\0') return {};
  if (!usable_delimiter(wanted))
    return usage_error(fmt::format("The delimiter {} cannot separate numbers; use a comma, semicolon, tab or bar",
                                   in_quotes(std::string_view(&wanted, 1))));
  dialect_ = Dialect(wanted);
  return {};
}

Status CsvText::read_names() {
  const Result<bool> any = find_row();
  if (!any.ok()) return any.error();
  if (!*any || is_blank())
    return bad_input(fmt::format("{}: its first line is {}, but column names are expected there", path(),
                                 *any ? "blank" : "missing: the file is empty"));
  const char* at = nullptr;
  std::size_t line_breaks = 0;
  std::vector<std::string> names;
  EIGENVEIL_TRY(texts(names, at, line_breaks));
  columns_ = {names.size(), std::move(names)};
  finish_row(at, line_breaks);
  rows_done_ = 0;
  return {};
}

// Whoever replaces one of at least two rows that agree leaves one that says the same: what is accepted does not depend
// on a single row. One row alone, and rows that need not agree, say nothing.
Status CsvText::count_fields(const SourceOptions& options) {
  if (options.fields > kMostColumns)
    return usage_error(fmt::format("{} fields are more than the {} that can be read", options.fields, kMostColumns));
  columns_.count = options.fields;
  if (options.fields > 0) return {};
  const auto unstated = [&](const char* why) {
    return fmt::format("{}: {}, so its number of columns must be stated: `fields` N (of pairs: `x_fields`, `y_fields`)",
                       path(), why);
  };
  if (options.bad_rows == BadRows::kMissing)
    return usage_error(unstated("has no header and may have lines that cannot be read"));
  const Result<bool> any = find_row();
  if (!any.ok()) return any.error();
  if (!*any) return bad_input(unstated("has neither a header nor rows"));
  const char* at = nullptr;
  std::size_t line_breaks = 0;
  std::vector<std::string> fields;
  EIGENVEIL_TRY(texts(fields, at, line_breaks));
  if (at == end() && !at_end_) {
    const std::size_t size = at - begin();
    EIGENVEIL_TRY(read_on());
    at = begin() + size;
  }
  if (at == end()) return bad_input(unstated("has no header and one row alone"));
  columns_.count = fields.size();
  return {};
}

Result<bool> CsvText::find_row() {
  if (begin_ == end_ && !at_end_) EIGENVEIL_TRY(read_on());
  return begin_ != end_;
}

bool CsvText::is_blank() const {
  const auto kind = dialect_[*dialect_.skip_blanks(begin())];
  return kind == Dialect::kLineFeed || kind == Dialect::kReturn;
}

Status CsvText::skip_row(const char* from, std::size_t line_breaks) {
  const auto* at = from;
  while (true) {
    while (at != end() && *at != '\n' && *at != '\r') ++at;
    begin_ = at - buffer_.data();  // what lies before is not needed again
    if (at != end() && dialect_.finish(at, end()) == Scan::kLast) {
      finish_row(at, line_breaks);
      return {};
    }
    EIGENVEIL_TRY(read_on());
    at = begin();
  }
}

void CsvText::finish_row(const char* at, std::size_t line_breaks) {
  begin_ = at - buffer_.data();
  line_ += 1 + line_breaks;
  ++rows_done_;
}

Status CsvText::texts(std::vector<std::string>& fields, const char*& at, std::size_t& line_breaks) {
  std::string scratch;
  std::string_view text;
  fields.clear();
  at = begin();
  line_breaks = 0;
  while (true) {
    const Scan scan = dialect_.field(at, end(), text, scratch, line_breaks);
    if (scan == Scan::kNeedMore) {
      EIGENVEIL_TRY(read_on());
      fields.clear();
      at = begin();
      line_breaks = 0;
      continue;
    }
    if (scan == Scan::kNul || scan == Scan::kAfterQuote) return malformed(scan, fields.size());
    fields.emplace_back(text);
    if (fields.size() > kMostColumns)
      return bad_input(
          fmt::format("{}: has more than {} columns, which is the most that can be read", place(), kMostColumns));
    if (scan == Scan::kLast) return {};
  }
}

std::string CsvText::place() const {
  if (columns_.count == 0) return fmt::format("{}: line {}", path(), line_);  // still at the names
  return fmt::format("{}: row {} (line {})", path(), rows_done_ + 1, line_);
}

std::string CsvText::place(std::size_t column) const {
  if (column >= columns_.count) return fmt::format("{}, field {}", place(), column + 1);
  return fmt::format("{}, column {}", place(), in_quotes(columns_.name(column)));
}

Error CsvText::ragged(std::size_t fields) const {
  if (is_blank())
    return bad_input(fmt::format(
        "{} is blank, and every line is a row; delete the line, or let `missing` zero-row count it as a row "
        "without values",
        place()));
  return bad_input(fmt::format("{} has {} fields, but {} {}; every row must have the same number of fields", place(),
                               fields, has_header() ? "the header has" : "there are to be", columns_.count));
}

Error CsvText::malformed(Scan scan, std::size_t column) const {
  if (scan == Scan::kNul)
    return bad_input(fmt::format("{}: a NUL byte; the file is binary or damaged, text is expected", place(column)));
  return bad_input(
      fmt::format("{}: text follows a closing quote; a quote inside a quoted field must be doubled", place(column)));
}

}  // namespace eigenveil::data
