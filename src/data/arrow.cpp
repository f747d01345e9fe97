// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/arrow.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arrow_column.hpp"
#include "columnar_source.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/data/given_rows.hpp"

namespace eigenveil {
namespace {

/// One of Arrow's structs, which is released once.
template <class Struct>
class Owned {
 public:
  Owned() = default;
  explicit Owned(const Struct& taken) : value_(taken) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  Struct* get() { return &value_; }
  Struct& operator*() { return value_; }
  Struct* operator->() { return &value_; }
  bool released() const { return value_.release == nullptr; }
  void reset() {
    if (value_.release != nullptr) value_.release(&value_);
    value_ = {};
  }

 private:
  Struct value_ = {};
};

class ArrowSource final : public data::ColumnarSource {
 public:
  explicit ArrowSource(const ArrowArrayStream& stream) : stream_(stream) {}

  Status open() {
    if (stream_.released() || stream_->get_schema == nullptr || stream_->get_next == nullptr)
      return bad_input("the Arrow stream was released or read already: give it again");
    Owned<ArrowSchema> schema;
    if (const int failure = stream_->get_schema(stream_.get(), schema.get()); failure != 0) return failed(failure);
    auto columns = EIGENVEIL_TRY(data::arrow_columns(*schema));
    children_ = schema->n_children;
    for (data::ArrowColumn& column : columns) {
      names_.push_back(column.name);
      chosen_.push_back({std::move(column), {}});
    }
    return {};
  }

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }

  Status choose(data::Selection selection, BadRows bad_rows, const std::string& name) override {
    std::vector<data::ChosenColumn> chosen;
    for (std::size_t i = 0; i < selection.positions.size(); ++i) {
      if (selection.positions[i] >= chosen_.size()) return internal_error("a column of the Arrow stream is not there");
      chosen.push_back({chosen_[selection.positions[i]].column, std::move(selection.categories[i])});
    }
    if (selection.person) {
      if (*selection.person >= chosen_.size()) return internal_error("a column of the Arrow stream is not there");
      chosen.push_back({chosen_[*selection.person].column, {}, true});
      whose_ = std::move(selection.whose);
    }
    chosen_ = std::move(chosen);
    names_ = std::move(selection.names);
    bad_rows_ = bad_rows;
    name_ = name;
    return {};
  }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    if (!checked_)
      for (const data::ChosenColumn& chosen : chosen_) EIGENVEIL_TRY(data::check_column(chosen));
    checked_ = true;
    const std::size_t width = names_.size();
    const bool people = chosen_.size() > width;  // behind the others
    batch.first_row = row_;
    batch.rows = 0;
    batch.values.resize(max_rows * width);
    batch.people.resize(people ? max_rows : 0);
    while (batch.rows < max_rows && !ended_) {
      if (done_ == length_) {
        EIGENVEIL_TRY(fetch());
        continue;
      }
      // A few thousand numbers at a time: rows of the batch stay in the cache while columns are copied into them.
      const auto block = static_cast<std::int64_t>(std::max<std::size_t>(16, 8192 / std::max<std::size_t>(1, width)));
      const std::int64_t rows = std::min({block, length_ - done_, static_cast<std::int64_t>(max_rows - batch.rows)});
      for (std::size_t c = 0; c < width; ++c)
        EIGENVEIL_TRY(
            readers_[c].read(done_, rows, &batch.values[batch.rows * width + c], width, bad_rows_, name_, row_));
      if (people)
        EIGENVEIL_TRY(
            readers_.back().read_people(done_, rows, &batch.people[batch.rows], whose_.key, bad_rows_, name_, row_));
      done_ += rows;
      row_ += rows;
      batch.rows += rows;
    }
    batch.values.resize(batch.rows * width);
    batch.people.resize(people ? batch.rows : 0);
    return {};
  }

 private:
  Error failed(int code) {
    const char* said = stream_->get_last_error != nullptr ? stream_->get_last_error(stream_.get()) : nullptr;
    return bad_input(fmt::format("the Arrow stream could not be read: {}",
                                 said != nullptr ? printable(said) : fmt::format("error {}", code)));
  }

  Status fetch() {
    readers_.clear();
    array_.reset();
    done_ = length_ = 0;
    if (const int failure = stream_->get_next(stream_.get(), array_.get()); failure != 0) {
      array_.reset();
      return failed(failure);
    }
    ended_ = array_.released();
    if (ended_) return {};
    EIGENVEIL_TRY(data::check_batch(*array_, children_, chosen_));
    for (const data::ChosenColumn& chosen : chosen_)
      readers_.push_back(EIGENVEIL_TRY(data::ColumnReader::of(*array_, chosen)));
    length_ = array_->length;
    return {};
  }

  Owned<ArrowArrayStream> stream_;
  Owned<ArrowArray> array_;
  std::int64_t children_ = 0;
  std::vector<data::ChosenColumn> chosen_;
  std::vector<std::string> names_;
  PersonColumn whose_;
  std::vector<data::ColumnReader> readers_;
  BadRows bad_rows_ = BadRows::kError;
  std::string name_ = kRowsInMemory;
  std::int64_t done_ = 0, length_ = 0;  // of the current batch
  std::size_t row_ = 0;
  bool checked_ = false, ended_ = false;
};

}  // namespace

Result<std::unique_ptr<RowSource>> arrow_source(ArrowArrayStream* stream) {
  if (stream == nullptr) return bad_input("there is no Arrow stream");
  auto source = std::make_unique<ArrowSource>(*stream);
  stream->release = nullptr;  // moved: the source alone releases it
  EIGENVEIL_TRY(source->open());
  return std::unique_ptr<RowSource>(std::move(source));
}

}  // namespace eigenveil
