// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "array.hpp"
#include "people.hpp"
#include "unread_rows.hpp"

namespace eigenveil::data {
namespace {

/// Batches grow by what was really read, not by what a header announces; below this size they are reserved at once.
constexpr std::size_t kReserveAtOnce = (std::size_t{64} << 20) / sizeof(double);

class ArraySource final : public RowSource {
 public:
  ArraySource(std::string name, const ArrayShape& shape, std::unique_ptr<ArrayReader> reader, Selection selection,
              BadRows bad_rows)
      : name_(std::move(name)),
        shape_(shape),
        reader_(std::move(reader)),
        selection_(std::move(selection)),
        bad_rows_(bad_rows) {}

  const std::vector<std::string>& columns() const override { return selection_.names; }
  std::optional<std::size_t> rows_announced() const override { return shape_.rows; }
  double progress() const override { return reader_->progress(); }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    batch.first_row = done_;
    batch.rows = 0;
    batch.values.clear();
    const std::size_t wanted = std::min(max_rows, shape_.rows - done_);
    Status status = read(batch, wanted);
    if (!status.ok()) {
      batch.rows = 0;
      batch.values.clear();
    }
    return status;
  }

  Status skip(std::size_t rows) override {
    const std::size_t skipped = std::min(rows, shape_.rows - done_);
    EIGENVEIL_TRY(reader_->skip(skipped));
    done_ += skipped;
    return skipped > 0 && done_ == shape_.rows ? reader_->finish() : Status();
  }

 private:
  Status read(RawBatch& batch, std::size_t wanted) {
    const std::size_t width = selection_.positions.size();
    const std::size_t most = reader_->rows_at_once(std::max<std::size_t>(1, kPieceBytes / (width * sizeof(double))));
    batch.values.reserve(std::min(wanted * width, kReserveAtOnce));
    while (batch.rows < wanted) {
      const std::size_t piece = std::min(most, wanted - batch.rows);
      batch.values.resize((batch.rows + piece) * width);
      double* out = batch.values.data() + batch.rows * width;
      EIGENVEIL_TRY(reader_->read(piece, selection_.positions, out));
      EIGENVEIL_TRY(map_categories(out, piece, done_, selection_, bad_rows_, name_));
      batch.rows += piece;
      done_ += piece;
    }
    if (wanted > 0 && done_ == shape_.rows) EIGENVEIL_TRY(reader_->finish());
    return {};
  }

  std::string name_;
  ArrayShape shape_;
  std::unique_ptr<ArrayReader> reader_;
  Selection selection_;
  BadRows bad_rows_;
  std::size_t done_ = 0;
};

}  // namespace

Table array_table(const std::string& name, const ArrayShape& shape, std::unique_ptr<ArrayReader> reader) {
  return table_of(name, {shape.columns, {}},
                  [name, shape, reader = std::move(reader)](Selection selection, const SourceOptions& options) mutable {
                    const double below = reader->exact_below();
                    auto rows = std::make_unique<ArraySource>(name, shape, std::move(reader),
                                                              with_person_last(std::move(selection)), options.bad_rows);
                    return Result<std::unique_ptr<RowSource>>(
                        taking_person(std::move(rows), options.person, name, options.bad_rows, below));
                  });
}

}  // namespace eigenveil::data
