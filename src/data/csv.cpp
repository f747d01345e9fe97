// SPDX-License-Identifier: Apache-2.0
#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "csv_text.hpp"
#include "eigenveil/data/whose.hpp"
#include "format.hpp"
#include "text.hpp"
#include "unread_rows.hpp"

namespace eigenveil::data {
namespace {

constexpr double kUnread = std::numeric_limits<double>::quiet_NaN();

class CsvSource final : public RowSource {
 public:
  /// `cut`: these are some of the lines of a file, and a quote that is open at their end says that they are cut wrong.
  CsvSource(std::unique_ptr<CsvText> csv, Selection selection, BadRows bad_rows,
            const std::optional<PersonColumn>& person, bool cut)
      : csv_(std::move(csv)),
        selection_(std::move(selection)),
        forgiving_(bad_rows == BadRows::kMissing),
        cut_(cut),
        plan_(csv_->columns().count) {
    for (std::size_t i = 0; i < selection_.positions.size(); ++i) {
      const auto& categories = selection_.categories[i];
      plan_[selection_.positions[i]] = {categories ? Use::kCategory : Use::kNumber, i};
    }
    if (selection_.person) plan_[*selection_.person].use = Use::kPerson;
    if (person) key_ = person->key;
  }

  const std::vector<std::string>& columns() const override { return selection_.names; }
  std::optional<std::size_t> rows_announced() const override { return std::nullopt; }
  double progress() const override { return csv_->progress(); }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    batch.first_row = csv_->rows_done();
    batch.rows = 0;
    Status status = read(batch, max_rows);
    if (!status.ok()) batch.rows = 0;
    batch.values.resize(batch.rows * selection_.names.size());
    batch.people.resize(selection_.person ? batch.rows : 0);
    return status;
  }

 private:
  enum class Use : std::uint8_t { kSkip, kNumber, kCategory, kPerson };
  struct Column {
    Use use = Use::kSkip;
    std::size_t slot = 0;  ///< place among the chosen columns
  };

  Status read(RawBatch& batch, std::size_t max_rows) {
    const std::size_t width = selection_.names.size();
    while (batch.rows < max_rows) {
      const Result<bool> found = csv_->find_row();
      if (!found.ok()) return found.error();
      if (!*found) break;
      if (batch.values.size() < (batch.rows + 1) * width) {
        const std::size_t doubled = 2 * batch.rows + 64;
        batch.values.resize(std::min(max_rows, doubled) * width);
      }
      if (selection_.person && batch.people.size() <= batch.rows) batch.people.resize(2 * batch.rows + 64);
      EIGENVEIL_TRY(read_row(batch.values.data() + batch.rows * width));
      if (selection_.person) batch.people[batch.rows] = whose_;
      ++batch.rows;
    }
    return {};
  }

  Status read_row(double* out) {
    while (true) {
      bad_field_.reset();
      whose_ = {};
      const char* at = csv_->begin();
      std::size_t line_breaks = 0;
      std::size_t column = 0;
      Scan scan = Scan::kField;
      for (; scan == Scan::kField; ++column) scan = read_field(at, column, out, line_breaks);
      if (forgiving_ && csv_->is_too_long(scan == Scan::kNeedMore ? csv_->end() : at)) {
        unread(out);
        return csv_->skip_long_row();
      }
      if (scan == Scan::kNeedMore && forgiving_ && !cut_ && csv_->ends_in_quotes()) {
        unread(out);
        csv_->finish_row(csv_->end(), line_breaks);
        return {};
      }
      if (scan == Scan::kNeedMore) {
        EIGENVEIL_TRY(csv_->read_on());
        continue;  // once more from the start of the row: rare, and simpler than to stop inside a number
      }
      const bool broken = scan == Scan::kNul || scan == Scan::kAfterQuote;
      if (forgiving_ && (broken || column != plan_.size())) unread(out);
      if (forgiving_ && broken) return csv_->skip_row(at, line_breaks);
      if (broken) return csv_->malformed(scan, column - 1);
      // A missing or extra field shifts the others: that is the error to report.
      if (!forgiving_ && column != plan_.size()) return csv_->ragged(column);
      if (!forgiving_ && bad_field_) return *bad_field_;
      csv_->finish_row(at, line_breaks);
      return {};
    }
  }

  // An id that is the first field stays if it could be read. Any other may be a number that a field too many or too few
  // put in its place: somebody with many such lines would be many people.
  void unread(double* out) {
    std::fill_n(out, selection_.names.size(), kUnread);
    if (whose_.missing() || selection_.person != std::size_t{0}) whose_ = kUnreadPerson;
  }

  Scan read_field(const char*& at, std::size_t column, double* out, std::size_t& line_breaks) {
    const Column use = column < plan_.size() ? plan_[column] : Column{};
    if (use.use == Use::kNumber) {
      const char* number = csv_->dialect().skip_blanks(at);
      const auto [stop, code] = fast_float::from_chars(number, csv_->end(), out[use.slot]);
      if (code == std::errc()) {
        const char* behind = csv_->dialect().skip_blanks(stop);
        const Scan scan = csv_->dialect().finish(behind, csv_->end());
        if (scan != Scan::kAfterQuote) {
          at = behind;
          return scan;
        }
      }
    }
    std::string_view text;
    const Scan scan = csv_->dialect().field(at, csv_->end(), text, scratch_, line_breaks);
    if (use.use == Use::kSkip || (scan != Scan::kField && scan != Scan::kLast) || bad_field_) return scan;
    // Of a line that is too long what lies beyond the limit is not there, wherever the window happens to end.
    if (use.use == Use::kPerson && forgiving_ && csv_->is_too_long(at)) return scan;
    if (use.use == Use::kPerson)
      whose_ = is_missing(text) ? PersonId{} : person_of(text, key_);
    else
      out[use.slot] = value_of(text, column, use);
    return scan;
  }

  double value_of(std::string_view text, std::size_t column, const Column& use) {
    if (use.use == Use::kCategory) {
      const CategoryIndex& categories = *selection_.categories[use.slot];
      const std::optional<double> index = categories.of_text(text);
      if (!index && !forgiving_) bad_field_ = unlisted_value(csv_->place(column), text, categories);
      return index.value_or(kUnread);
    }
    if (is_missing(text)) return kUnread;
    const std::optional<double> number = parse_number(text);
    if (!number && !forgiving_) bad_field_ = not_a_number(text, column);
    return number.value_or(kUnread);
  }

  Error not_a_number(std::string_view text, std::size_t column) const {
    const bool headless = !csv_->has_header() && csv_->rows_done() == 0;
    const bool other = plan_.size() == 1 && text.find_first_of(",;\t|") != std::string_view::npos;
    return bad_input(fmt::format(
        "{}: {} is not a number; correct it, list the column as categorical in a schema, or let `missing` "
        "zero-row count such rows as zero{}{}",
        csv_->place(column), in_quotes(text), headless ? "; if row 1 holds the column names, say `header` yes" : "",
        other ? "; if the fields are separated by something else, say `delimiter`" : ""));
  }

  std::unique_ptr<CsvText> csv_;
  Selection selection_;
  bool forgiving_;
  bool cut_;
  std::vector<Column> plan_;  ///< a column of the file each
  PersonColumn::Key key_ = {};
  PersonId whose_;
  std::string scratch_;
  std::optional<Error> bad_field_;
};

}  // namespace

namespace {

// A line feed ends a row unless it is inside quotes. So if the first k shares begin where rows do and none of them ends
// inside quotes, which is an error, then share k + 1 begins where a row does. All shares without error: all are right.
Result<std::unique_ptr<CsvText>> open_lines(const Recognised& from, const SourceOptions& options) {
  const Result<ByteRange> range = lines_of(*from.file, options.share);
  if (!range.ok()) return range.error();
  auto lines = file_stream(from.file, range->begin, range->end);
  auto csv = CsvText::open(from.stream(), options);  // names, or the number of fields
  if (!csv.ok()) return csv;
  if (options.share.index > 0) {
    (*csv)->go_to(std::move(lines));
    return csv;
  }
  SourceOptions known = options;
  known.fields = (*csv)->columns().count;
  return CsvText::open(std::move(lines), known);
}

}  // namespace

Result<Table> open_csv(const Recognised& from, const SourceOptions& options) {
  const bool cut = options.share.count > 1 && options.share.cut_text && !from.gzip;
  auto csv = EIGENVEIL_TRY(cut ? open_lines(from, options) : CsvText::open(from.stream(), options));
  FileColumns columns = csv->columns();
  return table_of(from.file->path(), std::move(columns),
                  [csv = std::move(csv), cut](Selection selection, const SourceOptions& options) mutable {
                    return Result<std::unique_ptr<RowSource>>(std::make_unique<CsvSource>(
                        std::move(csv), std::move(selection), options.bad_rows, options.person, cut));
                  });
}

}  // namespace eigenveil::data
