// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/data/source.hpp"
#include "selection.hpp"
#include "stream.hpp"

namespace eigenveil::data {

/// What follows a field.
enum class Scan : std::uint8_t {
  kField,      ///< a further field of the same row
  kLast,       ///< the end of the row
  kNeedMore,   ///< the window ends inside the field
  kNul,        ///< a NUL byte: this is no text
  kAfterQuote  ///< text after a closing quote
};

/// Which bytes mean what. Quotes are RFC 4180's; blanks around unquoted fields do not count.
class Dialect {
 public:
  enum Class : std::uint8_t { kOrdinary, kBlank, kDelimiter, kLineFeed, kReturn, kNulByte };

  explicit Dialect(char delimiter);

  char delimiter() const { return delimiter_; }
  Class operator[](char c) const { return classes_[static_cast<unsigned char>(c)]; }

  /// What the byte at `at` ends, and moves behind it. Windows end in a NUL byte at `end`.
  Scan finish(const char*& at, const char* end) const {
    switch ((*this)[*at]) {
      case kDelimiter:
        ++at;
        return Scan::kField;
      case kLineFeed:
        ++at;
        return Scan::kLast;
      case kReturn:
        if (at + 1 == end) return Scan::kNeedMore;
        at += at[1] == '\n' ? 2 : 1;
        return Scan::kLast;
      case kNulByte:
        return at == end ? Scan::kNeedMore : Scan::kNul;
      default:
        return Scan::kAfterQuote;
    }
  }
  const char* skip_blanks(const char* at) const {
    while ((*this)[*at] == kBlank) ++at;
    return at;
  }

  /// The text of the field at `at`, unquoted (into `scratch` if quotes inside are doubled), and moves behind it.
  /// `line_breaks` grows by those inside quotes.
  Scan field(const char*& at, const char* end, std::string_view& text, std::string& scratch,
             std::size_t& line_breaks) const;

 private:
  Scan quoted_field(const char*& at, const char* end, std::string_view& text, std::string& scratch,
                    std::size_t& line_breaks) const;

  char delimiter_;
  std::array<Class, 256> classes_{};
};

/// A window that slides over the text of a CSV file and always begins at a row. Behind its end lies a NUL byte, and
/// the last row of the file always ends in a line feed, added if it is missing.
class CsvText {
 public:
  /// Reads the names if the options say that the first line holds them. Refuses if they do not say whether it does.
  static Result<std::unique_ptr<CsvText>> open(std::unique_ptr<ByteStream> stream, const SourceOptions& options);

  explicit CsvText(std::unique_ptr<ByteStream> stream);

  const std::string& path() const { return stream_->name(); }
  const FileColumns& columns() const { return columns_; }
  const Dialect& dialect() const { return dialect_; }
  bool has_header() const { return !columns_.names.empty(); }
  double progress() const { return stream_->progress(); }

  const char* begin() const { return buffer_.data() + begin_; }
  const char* end() const { return buffer_.data() + end_; }
  std::size_t rows_done() const { return rows_done_; }

  /// Whether there is a row at hand; false at the end of the file.
  Result<bool> find_row();
  /// Of the row at hand: no more than blanks.
  bool is_blank() const;
  /// The row at hand is malformed at `from`, and ends with that line.
  Status skip_row(const char* from, std::size_t line_breaks);
  /// The row at hand, which has come to `at`, is longer than a row may be.
  bool is_too_long(const char* at) const { return static_cast<std::size_t>(at - begin()) > kLongestRow; }
  /// It ends with the first line that ends beyond that length, in quotes or not: that is for the row alone to decide.
  Status skip_long_row() { return skip_row(begin() + kLongestRow, 0); }
  /// The row at hand does not end in the window, and nothing follows: a quote is open.
  bool ends_in_quotes() const { return at_end_; }
  /// Goes on with other rows of the same kind; they are numbered from 1 again.
  void go_to(std::unique_ptr<ByteStream> stream);
  /// Reads on because the row at hand does not end in the window. Pointers into the window become invalid.
  Status read_on();
  /// The row at hand ends at `at`; it had that many line breaks inside quotes.
  void finish_row(const char* at, std::size_t line_breaks);
  /// The texts of the row at hand, which stays at hand. For what is not worth being fast. `at` and `line_breaks` are
  /// what `finish_row` wants.
  Status texts(std::vector<std::string>& fields, const char*& at, std::size_t& line_breaks);

  /// "FILE: row 3 (line 4)" of the row at hand.
  std::string place() const;
  /// The same with the column.
  std::string place(std::size_t column) const;
  Error ragged(std::size_t fields) const;
  /// For kNul and kAfterQuote.
  Error malformed(Scan scan, std::size_t column) const;

 private:
  static constexpr std::size_t kLongestRow = std::size_t{64} << 20;

  Status refuse_binary();
  Status take_dialect(char wanted);
  Status read_names();
  Status count_fields(const SourceOptions& options);

  std::unique_ptr<ByteStream> stream_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool at_end_ = false;
  std::size_t line_ = 1;
  std::size_t rows_done_ = 0;
  Dialect dialect_{','};
  FileColumns columns_;
};

}  // namespace eigenveil::data
