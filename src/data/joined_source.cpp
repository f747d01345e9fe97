// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/joined_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "columnar_source.hpp"
#include "eigenveil/data/given_rows.hpp"
#include "text.hpp"

namespace eigenveil {
namespace {

// A source and where its chosen columns go in a joined row.
struct Part {
  std::unique_ptr<RowSource> source;
  std::size_t width;                // columns before any choice
  std::vector<std::size_t> places;  // of the chosen ones
  bool tells_people = false;        // one of its columns says whose rows they are
};

class JoinedSource final : public data::ColumnarSource {
 public:
  JoinedSource(std::vector<std::unique_ptr<RowSource>> parts, std::vector<std::string> names)
      : names_(std::move(names)), width_(names_.size()) {
    std::size_t place = 0;
    for (auto& source : parts) {
      Part part{std::move(source), 0, {}};
      part.width = part.source->columns().size();
      part.places.resize(part.width);
      std::iota(part.places.begin(), part.places.end(), place);
      place += part.width;
      parts_.push_back(std::move(part));
    }
  }

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return parts_.front().source->rows_announced(); }
  double progress() const override { return parts_.front().source->progress(); }

  // Each part chooses among its own columns; of a part without a chosen one only the number of rows matters.
  Status choose(data::Selection selection, BadRows bad_rows, const std::string& name) override {
    std::size_t first = 0;
    for (Part& part : parts_) {
      data::Selection own;
      part.places.clear();
      for (std::size_t i = 0; i < selection.positions.size(); ++i) {
        const std::size_t position = selection.positions[i];
        if (position < first || position >= first + part.width) continue;
        own.positions.push_back(position - first);
        own.names.push_back(selection.names[i]);
        own.categories.push_back(std::move(selection.categories[i]));
        part.places.push_back(i);
      }
      part.tells_people = selection.person && *selection.person >= first && *selection.person < first + part.width;
      if (part.tells_people) {
        own.person = *selection.person - first;
        own.whose = selection.whose;
      }
      first += part.width;
      part.source =
          EIGENVEIL_TRY(data::chosen_from(std::move(part.source), part.width, std::move(own), bad_rows, name));
    }
    names_ = std::move(selection.names);
    width_ = names_.size();
    return {};
  }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    EIGENVEIL_TRY(parts_.front().source->next(piece_, max_rows));
    const std::size_t rows = piece_.rows;
    if (rows > max_rows) return bad_input("a part of joined rows gave more rows than it was asked for");
    batch.first_row = done_;
    batch.rows = rows;
    batch.values.resize(rows * width_);
    batch.people.clear();
    EIGENVEIL_TRY(scatter(parts_.front(), 0, batch));
    for (std::size_t p = 1; p < parts_.size(); ++p) EIGENVEIL_TRY(follow(parts_[p], batch));
    done_ += rows;
    return {};
  }

 private:
  // The same rows of another part, in as many pieces as it gives; none must be left where the first part ends.
  Status follow(Part& part, RawBatch& batch) {
    std::size_t have = 0;
    do {
      const std::size_t wanted = std::max<std::size_t>(1, batch.rows - have);
      EIGENVEIL_TRY(part.source->next(piece_, wanted));
      if (piece_.rows > batch.rows - have || (piece_.rows == 0 && have < batch.rows))
        return bad_input("the tables that stand side by side have different numbers of rows");
      EIGENVEIL_TRY(scatter(part, have, batch));
      have += piece_.rows;
    } while (have < batch.rows);
    return {};
  }

  Status scatter(const Part& part, std::size_t first, RawBatch& batch) const {
    const std::size_t width = part.places.size();
    if (piece_.values.size() != piece_.rows * width)
      return bad_input(fmt::format("a part of joined rows gave {} numbers for {} rows of {} columns",
                                   piece_.values.size(), piece_.rows, width));
    for (std::size_t i = 0; i < piece_.rows; ++i)
      for (std::size_t j = 0; j < width; ++j)
        batch.values[(first + i) * width_ + part.places[j]] = piece_.values[i * width + j];
    if (part.tells_people) batch.people.insert(batch.people.end(), piece_.people.begin(), piece_.people.end());
    return {};
  }

  std::vector<Part> parts_;
  std::vector<std::string> names_;
  std::size_t width_;
  std::size_t done_ = 0;
  RawBatch piece_;
};

class TextSource final : public data::ColumnarSource {
 public:
  TextSource(std::vector<std::string> values, std::string name) : values_(std::move(values)), names_{std::move(name)} {}

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return values_.size(); }
  double progress() const override {
    return values_.empty() ? 1 : static_cast<double>(done_) / static_cast<double>(values_.size());
  }
  Status choose(data::Selection selection, BadRows bad_rows, const std::string& name) override {
    selection_ = std::move(selection);
    bad_rows_ = bad_rows;
    name_ = name;
    for (std::size_t i = 0; i < selection_->positions.size(); ++i)
      if (!selection_->categories[i]) return unlisted(selection_->names[i]);
    return {};
  }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    if (!selection_) return unlisted(names_.front());
    batch.first_row = done_;
    batch.rows = std::min(max_rows, values_.size() - done_);
    batch.values.clear();
    batch.people.clear();
    for (std::size_t i = done_; i < done_ + batch.rows; ++i) {
      if (selection_->person)
        batch.people.push_back(data::is_missing(values_[i]) ? PersonId{}
                                                            : person_of(values_[i], selection_->whose.key));
      for (std::size_t c = 0; c < selection_->positions.size(); ++c) {
        const auto index = selection_->categories[c]->of_text(values_[i]);
        if (!index && bad_rows_ == BadRows::kError)
          return data::unlisted_value(fmt::format("{}: row {}, column '{}'", name_, i + 1, selection_->names[c]),
                                      values_[i], *selection_->categories[c]);
        batch.values.push_back(index.value_or(std::numeric_limits<double>::quiet_NaN()));
      }
    }
    done_ += batch.rows;
    return {};
  }

 private:
  static Status unlisted(const std::string& column) {
    return bad_input(fmt::format("column {} is text: list the values that it may have, in a schema or as `classes`",
                                 data::in_quotes(column)));
  }

  std::vector<std::string> values_;
  std::vector<std::string> names_;
  std::optional<data::Selection> selection_;
  BadRows bad_rows_ = BadRows::kError;
  std::string name_ = kRowsInMemory;
  std::size_t done_ = 0;
};

}  // namespace

Result<std::unique_ptr<RowSource>> joined_source(std::vector<std::unique_ptr<RowSource>> parts,
                                                 std::vector<std::string> names) {
  std::size_t columns = 0;
  for (const auto& part : parts) columns += part->columns().size();
  if (parts.empty() || names.size() != columns)
    return usage_error(
        fmt::format("{} tables of {} columns in all were given {} names", parts.size(), columns, names.size()));
  return std::unique_ptr<RowSource>(std::make_unique<JoinedSource>(std::move(parts), std::move(names)));
}

std::unique_ptr<RowSource> text_source(std::vector<std::string> values, std::string name) {
  return std::make_unique<TextSource>(std::move(values), std::move(name));
}

}  // namespace eigenveil
