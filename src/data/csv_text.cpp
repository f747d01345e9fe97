#include "csv_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "text.hpp"

namespace eigenveil::data {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::size_t kLongestRow = std::size_t{64} << 20;
constexpr std::string_view kCandidates = ",;\t|";

/// How often each candidate delimits the first row, or nothing if the row does not end in the text.
std::optional<std::array<std::size_t, kCandidates.size()>> count_delimiters(std::string_view text) {
  std::array<std::size_t, kCandidates.size()> counts{};
  bool in_quotes = false;
  bool at_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_quotes) {
      if (c != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"')
        ++i;
      else
        in_quotes = false;
      continue;
    }
    if (c == '\n' || c == '\r') return counts;
    const std::size_t candidate = kCandidates.find(c);
    if (candidate != std::string_view::npos) ++counts[candidate];
    if (c == '"' && at_start) in_quotes = true;
    at_start = candidate != std::string_view::npos || (at_start && c == ' ');
  }
  return std::nullopt;
}

bool usable_delimiter(char c) {
  const bool in_numbers = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return !in_numbers && std::string_view("\"\r\n+-.").find(c) == std::string_view::npos;
}

}  // namespace

CsvText::CsvText(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)), buffer_(kBlock + 2) {}

Result<std::unique_ptr<CsvText>> CsvText::open(std::unique_ptr<ByteStream> stream, const SourceOptions& options) {
  auto csv = std::make_unique<CsvText>(std::move(stream));
  EIGENVEIL_TRY(csv->read_on());
  EIGENVEIL_TRY(csv->refuse_binary());
  const Result<bool> any = csv->find_row();
  if (!any.ok()) return any.error();
  if (!*any) return bad_input(fmt::format("{}: is empty: it has blank lines only", csv->path()));
  EIGENVEIL_TRY(csv->choose_dialect(options.delimiter));
  EIGENVEIL_TRY(csv->read_header(options.header));
  const Result<bool> rows = csv->find_row();
  if (!rows.ok()) return rows.error();
  if (!*rows)
    return bad_input(fmt::format("{}: has 0 rows: a header with column names and nothing below it", csv->path()));
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
  if (head.empty()) return bad_input(fmt::format("{}: is empty", path()));
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

Status CsvText::choose_dialect(char wanted) {
  if (wanted != '\0') {
    if (!usable_delimiter(wanted))
      return usage_error(fmt::format("The delimiter {} cannot separate numbers; use a comma, semicolon, tab or bar",
                                     in_quotes(std::string_view(&wanted, 1))));
    dialect_ = Dialect(wanted);
    return {};
  }
  auto counts = count_delimiters({begin(), end_ - begin_});
  while (!counts) {
    EIGENVEIL_TRY(read_on());
    counts = count_delimiters({begin(), end_ - begin_});
  }
  const auto best = std::max_element(counts->begin(), counts->end());
  dialect_ = Dialect(kCandidates[static_cast<std::size_t>(best - counts->begin())]);
  return {};
}

Status CsvText::read_header(Header header) {
  std::vector<std::string> fields;
  const char* at = nullptr;
  std::size_t line_breaks = 0;
  EIGENVEIL_TRY(texts(fields, at, line_breaks));
  columns_.count = fields.size();
  const bool all_data = std::all_of(fields.begin(), fields.end(), [](const std::string& text) {
    return is_missing(text) || parse_number(text).has_value();
  });
  if (header == Header::kNo || (header == Header::kAuto && all_data)) return {};
  columns_.names = std::move(fields);
  finish_row(at, line_breaks);
  rows_done_ = 0;
  return {};
}

Result<bool> CsvText::find_row() {
  while (true) {
    const char* at = dialect_.skip_blanks(begin());
    if (at == end()) {
      if (at_end_) return false;
      EIGENVEIL_TRY(read_on());
      continue;
    }
    const auto kind = dialect_[*at];
    if (kind != Dialect::kLineFeed && kind != Dialect::kReturn) return true;
    if (dialect_.finish(at, end()) == Scan::kNeedMore) {
      EIGENVEIL_TRY(read_on());
      continue;
    }
    begin_ = static_cast<std::size_t>(at - buffer_.data());
    ++line_;
  }
}

void CsvText::finish_row(const char* at, std::size_t line_breaks) {
  begin_ = static_cast<std::size_t>(at - buffer_.data());
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
  if (columns_.count == 0) return fmt::format("{}: line {}", path(), line_);  // still at the first row: names or data
  return fmt::format("{}: row {} (line {})", path(), rows_done_ + 1, line_);
}

std::string CsvText::place(std::size_t column) const {
  if (column >= columns_.count) return fmt::format("{}, field {}", place(), column + 1);
  return fmt::format("{}, column {}", place(), in_quotes(columns_.name(column)));
}

Error CsvText::ragged(std::size_t fields) const {
  return bad_input(fmt::format("{} has {} fields, but the {} has {}; every row must have the same number of fields",
                               place(), fields, has_header() ? "header" : "first row", columns_.count));
}

Error CsvText::malformed(Scan scan, std::size_t column) const {
  if (scan == Scan::kNul)
    return bad_input(fmt::format("{}: a NUL byte; the file is binary or damaged, text is expected", place(column)));
  return bad_input(
      fmt::format("{}: text follows a closing quote; a quote inside a quoted field must be doubled", place(column)));
}

}  // namespace eigenveil::data
