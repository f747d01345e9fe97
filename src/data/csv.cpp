#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "csv_text.hpp"
#include "format.hpp"
#include "text.hpp"

namespace eigenveil::data {
namespace {

class CsvSource final : public RowSource {
 public:
  CsvSource(std::unique_ptr<CsvText> csv, Selection selection)
      : csv_(std::move(csv)), selection_(std::move(selection)), plan_(csv_->columns().count) {
    for (std::size_t i = 0; i < selection_.positions.size(); ++i) {
      const auto& categories = selection_.categories[i];
      plan_[selection_.positions[i]] = {categories ? Use::kCategory : Use::kNumber, i};
    }
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
    return status;
  }

 private:
  enum class Use : std::uint8_t { kSkip, kNumber, kCategory };
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
      EIGENVEIL_TRY(read_row(batch.values.data() + batch.rows * width));
      ++batch.rows;
    }
    return {};
  }

  Status read_row(double* out) {
    while (true) {
      bad_field_.reset();
      const char* at = csv_->begin();
      std::size_t line_breaks = 0;
      std::size_t column = 0;
      Scan scan = Scan::kField;
      for (; scan == Scan::kField; ++column) scan = read_field(at, column, out, line_breaks);
      if (scan == Scan::kNeedMore) {
        EIGENVEIL_TRY(csv_->read_on());
        continue;  // once more from the start of the row: rare, and simpler than to stop inside a number
      }
      if (scan == Scan::kNul || scan == Scan::kAfterQuote) return csv_->malformed(scan, column - 1);
      // A missing or extra field shifts the others: that is the error to report.
      if (column != plan_.size()) return csv_->ragged(column);
      if (bad_field_) return *bad_field_;
      csv_->finish_row(at, line_breaks);
      return {};
    }
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
    if (use.use != Use::kSkip && (scan == Scan::kField || scan == Scan::kLast) && !bad_field_)
      out[use.slot] = value_of(text, column, use);
    return scan;
  }

  double value_of(std::string_view text, std::size_t column, const Column& use) {
    constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
    if (use.use == Use::kCategory) {
      const CategoryIndex& categories = *selection_.categories[use.slot];
      const std::optional<double> index = categories.of_text(text);
      if (!index) bad_field_ = unlisted_value(csv_->place(column), text, categories);
      return index.value_or(kMissing);
    }
    if (is_missing(text)) return kMissing;
    const std::optional<double> number = parse_number(text);
    if (!number) bad_field_ = not_a_number(text, column);
    return number.value_or(kMissing);
  }

  Error not_a_number(std::string_view text, std::size_t column) const {
    const bool headless = !csv_->has_header() && csv_->rows_done() == 0;
    return bad_input(
        fmt::format("{}: {} is not a number; correct it, leave the field empty, or list the column as "
                    "categorical in a schema{}",
                    csv_->place(column), in_quotes(text),
                    headless ? "; if row 1 holds the column names, say that the file has a header" : ""));
  }

  std::unique_ptr<CsvText> csv_;
  Selection selection_;
  std::vector<Column> plan_;  ///< a column of the file each
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
  if (options.share.index == 0) return CsvText::open(std::move(lines), options);
  auto csv = CsvText::open(from.stream(), options);  // delimiter and names
  if (csv.ok()) (*csv)->go_to(std::move(lines));
  return csv;
}

}  // namespace

Result<std::unique_ptr<RowSource>> open_csv(const Recognised& from, const SourceOptions& options) {
  const bool cut = options.share.count > 1 && options.share.cut_text && !from.gzip;
  Result<std::unique_ptr<CsvText>> csv = cut ? open_lines(from, options) : CsvText::open(from.stream(), options);
  if (!csv.ok()) return csv.error();
  Result<Selection> selection = select_columns(from.file->path(), (*csv)->columns(), options);
  if (!selection.ok()) return selection.error();
  return std::unique_ptr<RowSource>(std::make_unique<CsvSource>(std::move(*csv), std::move(*selection)));
}

}  // namespace eigenveil::data
