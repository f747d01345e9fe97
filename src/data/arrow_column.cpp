// SPDX-License-Identifier: Apache-2.0
#include "arrow_column.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "people.hpp"
#include "text.hpp"

namespace eigenveil::data {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

bool is_text(ArrowCell cell) {
  return cell == ArrowCell::kText || cell == ArrowCell::kLongText || cell == ArrowCell::kTextView;
}

bool is_index(ArrowCell cell) { return cell >= ArrowCell::kInt8 && cell <= ArrowCell::kUint64; }

ArrowCell cell_of(std::string_view format) {
  if (format == "vu") return ArrowCell::kTextView;
  if (format.size() != 1) return ArrowCell::kOther;
  switch (format.front()) {
    case 'n':
      return ArrowCell::kNull;
    case 'b':
      return ArrowCell::kBool;
    case 'c':
      return ArrowCell::kInt8;
    case 'C':
      return ArrowCell::kUint8;
    case 's':
      return ArrowCell::kInt16;
    case 'S':
      return ArrowCell::kUint16;
    case 'i':
      return ArrowCell::kInt32;
    case 'I':
      return ArrowCell::kUint32;
    case 'l':
      return ArrowCell::kInt64;
    case 'L':
      return ArrowCell::kUint64;
    case 'e':
      return ArrowCell::kFloat16;
    case 'f':
      return ArrowCell::kFloat32;
    case 'g':
      return ArrowCell::kFloat64;
    case 'u':
      return ArrowCell::kText;
    case 'U':
      return ArrowCell::kLongText;
    default:
      return ArrowCell::kOther;
  }
}

// "+w:768": a list of 768 values. Nothing for other formats.
std::optional<std::int64_t> list_of(std::string_view format) {
  if (!format.starts_with("+w:")) return std::nullopt;
  std::int64_t size = 0;
  const auto [end, failure] = std::from_chars(format.data() + 3, format.data() + format.size(), size);
  if (failure != std::errc() || end != format.data() + format.size() || size < 1) return std::nullopt;
  return size;
}

Status complete(const ArrowSchema* schema) {
  if (schema == nullptr || schema->release == nullptr || schema->format == nullptr || schema->n_children < 0 ||
      (schema->n_children > 0 && schema->children == nullptr))
    return bad_input("the Arrow stream's schema is incomplete");
  return {};
}

// The type of a column that is no list.
Result<ArrowColumn> plain_column(const ArrowSchema& schema, const std::string& name) {
  ArrowColumn column{.name = name, .format = schema.format, .cell = cell_of(schema.format)};
  if (schema.dictionary == nullptr) return column;
  EIGENVEIL_TRY(complete(schema.dictionary));
  column.index = column.cell;
  column.cell = schema.dictionary->dictionary == nullptr ? cell_of(schema.dictionary->format) : ArrowCell::kOther;
  column.format = fmt::format("dictionary of {}", schema.dictionary->format);
  if (!is_index(*column.index)) column.cell = ArrowCell::kOther;
  return column;
}

std::int64_t buffers_of(ArrowCell cell) {
  return cell == ArrowCell::kNull ? 0 : cell == ArrowCell::kText || cell == ArrowCell::kLongText ? 3 : 2;
}

bool counts_fit(const ArrowArray* array) {
  return array != nullptr && array->release != nullptr && array->length >= 0 && array->offset >= 0 &&
         array->offset <= std::numeric_limits<std::int64_t>::max() - array->length && array->n_buffers >= 0 &&
         array->n_children >= 0 && array->null_count >= -1 && array->null_count <= array->length &&
         (array->n_buffers == 0 || array->buffers != nullptr) && (array->n_children == 0 || array->children != nullptr);
}

// Whether an array has the buffers that cells of its type need, and `least` cells.
bool holds(const ArrowArray* array, ArrowCell cell, std::int64_t least) {
  if (!counts_fit(array) || array->length < least) return false;
  if (cell == ArrowCell::kNull) return true;
  if (cell == ArrowCell::kTextView ? array->n_buffers < 3 : array->n_buffers != buffers_of(cell)) return false;
  if (array->length > 0 && array->buffers[1] == nullptr) return false;
  return array->null_count <= 0 || array->buffers[0] != nullptr;
}

bool valid(const ArrowArray& array, std::int64_t i) {
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  const std::int64_t at = array.offset + i;
  return bits == nullptr || ((bits[at >> 3] >> (at & 7)) & 1) != 0;
}

bool may_have_nulls(const ArrowArray& array) {
  return array.n_buffers > 0 && array.buffers[0] != nullptr && array.null_count != 0;
}

template <class T>
void copy(const void* cells, std::int64_t start, std::int64_t step, std::int64_t count, double* out,
          std::size_t stride) {
  const auto* from = static_cast<const T*>(cells) + start;
  // What the next call wants: there are more columns than a processor foresees. Of columns that end it does nothing.
  if (step == 1)
    for (std::int64_t i = count; i < 2 * count; i += 64 / static_cast<std::int64_t>(sizeof(T)))
      __builtin_prefetch(from + i);
  for (std::int64_t i = 0; i < count; ++i) out[i * stride] = static_cast<double>(from[i * step]);
}

// Cells of numbers, of which the first is `start` after the array's offset.
void copy_numbers(const ArrowArray& array, ArrowCell cell, std::int64_t start, std::int64_t step, std::int64_t count,
                  double* out, std::size_t stride) {
  if (count == 0) return;
  const std::int64_t from = array.offset + start;
  const void* cells = cell == ArrowCell::kNull ? nullptr : array.buffers[1];
  switch (cell) {
    case ArrowCell::kBool:
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = from + i * step;
        out[i * stride] = (static_cast<const std::uint8_t*>(cells)[at >> 3] >> (at & 7)) & 1;
      }
      return;
    case ArrowCell::kInt8:
      return copy<std::int8_t>(cells, from, step, count, out, stride);
    case ArrowCell::kUint8:
      return copy<std::uint8_t>(cells, from, step, count, out, stride);
    case ArrowCell::kInt16:
      return copy<std::int16_t>(cells, from, step, count, out, stride);
    case ArrowCell::kUint16:
      return copy<std::uint16_t>(cells, from, step, count, out, stride);
    case ArrowCell::kInt32:
      return copy<std::int32_t>(cells, from, step, count, out, stride);
    case ArrowCell::kUint32:
      return copy<std::uint32_t>(cells, from, step, count, out, stride);
    case ArrowCell::kInt64:
      return copy<std::int64_t>(cells, from, step, count, out, stride);
    case ArrowCell::kUint64:
      return copy<std::uint64_t>(cells, from, step, count, out, stride);
    case ArrowCell::kFloat16:
      return copy<Eigen::half>(cells, from, step, count, out, stride);
    case ArrowCell::kFloat32:
      return copy<float>(cells, from, step, count, out, stride);
    case ArrowCell::kFloat64:
      return copy<double>(cells, from, step, count, out, stride);
    default:
      for (std::int64_t i = 0; i < count; ++i) out[i * stride] = kMissing;
  }
}

Error damaged(const std::string& column, const char* what) {
  return bad_input(fmt::format("the Arrow stream, column {}: {}", in_quotes(column), what));
}

template <class Offset>
std::optional<std::string_view> between_offsets(const ArrowArray& array, std::int64_t at) {
  const auto* offsets = static_cast<const Offset*>(array.buffers[1]);
  const Offset first = offsets[at], last = offsets[at + 1];
  if (first < 0 || last < first) return std::nullopt;
  if (first == last) return std::string_view();
  if (array.buffers[2] == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(array.buffers[2]) + first, last - first);
}

// A view is 16 bytes: a length, then up to 12 bytes of text, or 4 of them, the number of a buffer and a place in it.
// The last buffer says how long the others are.
std::optional<std::string_view> in_view(const ArrowArray& array, std::int64_t at) {
  const char* view = static_cast<const char*>(array.buffers[1]) + 16 * at;
  std::int32_t length = 0, buffer = 0, place = 0;
  std::memcpy(&length, view, 4);
  if (length < 0) return std::nullopt;
  if (length <= 12) return std::string_view(view + 4, length);
  std::memcpy(&buffer, view + 8, 4);
  std::memcpy(&place, view + 12, 4);
  const std::int64_t buffers = array.n_buffers - 3;
  const auto* sizes = static_cast<const std::int64_t*>(array.buffers[array.n_buffers - 1]);
  if (buffer < 0 || buffer >= buffers || place < 0 || sizes == nullptr) return std::nullopt;
  const void* text = array.buffers[2 + buffer];
  if (text == nullptr || std::int64_t{place} + length > sizes[buffer]) return std::nullopt;
  return std::string_view(static_cast<const char*>(text) + place, length);
}

// The text of a cell; nothing if its offsets are impossible.
std::optional<std::string_view> text_at(const ArrowArray& array, ArrowCell cell, std::int64_t i) {
  const std::int64_t at = array.offset + i;
  if (cell == ArrowCell::kText) return between_offsets<std::int32_t>(array, at);
  if (cell == ArrowCell::kLongText) return between_offsets<std::int64_t>(array, at);
  return in_view(array, at);
}

constexpr const char* kBadText = "a text reaches beyond its buffer";

// What the values of a dictionary mean: numbers, or places in the public list.
Result<std::vector<std::optional<double>>> meanings(const ArrowArray& dictionary, const ChosenColumn& chosen) {
  const std::size_t size = dictionary.length;
  std::vector<std::optional<double>> found(size);
  std::vector<double> numbers(is_text(chosen.column.cell) ? 0 : size);
  if (!numbers.empty()) copy_numbers(dictionary, chosen.column.cell, 0, 1, dictionary.length, numbers.data(), 1);
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool null = may_have_nulls(dictionary) && !valid(dictionary, at);
    if (numbers.empty() && !null) {
      const auto text = text_at(dictionary, chosen.column.cell, at);
      if (!text) return damaged(chosen.column.name, kBadText);
      found[i] = chosen.categories->of_text(*text);
    } else {
      const double number = null ? kMissing : numbers[i];
      found[i] = chosen.categories ? chosen.categories->of_number(number) : std::optional(number);
    }
  }
  return found;
}

// Whose a cell is; it is not null.
Result<PersonId> person_at(const ArrowArray& array, const ArrowColumn& column, std::int64_t at,
                           const PersonColumn::Key& key, BadRows bad_rows) {
  if (is_text(column.cell)) {
    const auto text = text_at(array, column.cell, at);
    if (!text) return damaged(column.name, kBadText);
    return is_missing(*text) ? PersonId{} : person_of(*text, key);
  }
  // A double would not hold all digits of these.
  if (column.cell == ArrowCell::kInt64)
    return person_of(std::to_string(static_cast<const std::int64_t*>(array.buffers[1])[array.offset + at]), key);
  if (column.cell == ArrowCell::kUint64)
    return person_of(std::to_string(static_cast<const std::uint64_t*>(array.buffers[1])[array.offset + at]), key);
  double number = kMissing;
  copy_numbers(array, column.cell, at, 1, 1, &number, 1);
  const double below = column.cell == ArrowCell::kFloat16   ? kExactHalf
                       : column.cell == ArrowCell::kFloat32 ? kExactFloat
                                                            : kExactDouble;
  return person_of_number(number, below, key, bad_rows);
}

}  // namespace

Result<std::vector<ArrowColumn>> arrow_columns(const ArrowSchema& schema) {
  EIGENVEIL_TRY(complete(&schema));
  if (std::string_view(schema.format) != "+s")
    return bad_input(fmt::format("the Arrow stream is no table: its batches have the format {}, expected '+s'",
                                 in_quotes(schema.format)));
  std::vector<ArrowColumn> columns;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    EIGENVEIL_TRY(complete(schema.children[i]));
    const ArrowSchema& child = *schema.children[i];
    const std::string name = child.name == nullptr || *child.name == '\0' ? std::to_string(i + 1) : child.name;
    const std::int64_t list = list_of(child.format).value_or(0);
    if (list > 0 && child.n_children != 1) return bad_input("the Arrow stream's schema has a list of no type");
    if (list > 0) EIGENVEIL_TRY(complete(child.children[0]));
    if (columns.size() + std::max<std::int64_t>(1, list) > kMostColumns)
      return bad_input(fmt::format("the Arrow stream has more than {} columns", kMostColumns));
    auto column = EIGENVEIL_TRY(plain_column(list > 0 ? *child.children[0] : child, name));
    column.child = i;
    column.list = list;
    for (std::int64_t place = 0; place < std::max<std::int64_t>(1, list); ++place) {
      column.place = place;
      if (list > 0) column.name = fmt::format("{}.{}", name, place + 1);
      columns.push_back(column);
    }
  }
  return columns;
}

Status check_column(const ChosenColumn& chosen) {
  const ArrowColumn& column = chosen.column;
  if (column.cell == ArrowCell::kOther)
    return bad_input(fmt::format(
        "the Arrow stream, column {}: rows are made of numbers, booleans and categories, not of the Arrow type {}; "
        "leave the column out, or cast it",
        in_quotes(column.name), in_quotes(column.format)));
  if (is_text(column.cell) && !chosen.categories && !chosen.tells_people)
    return bad_input(fmt::format(
        "the Arrow stream, column {} is text: list the values that it may have in a schema, or leave the column out",
        in_quotes(column.name)));
  return {};
}

Status check_batch(const ArrowArray& batch, std::int64_t children, const std::vector<ChosenColumn>& columns) {
  if (!counts_fit(&batch) || batch.n_children != children || batch.n_buffers != 1 ||
      (batch.null_count > 0 && batch.buffers[0] == nullptr))
    return bad_input("the Arrow stream gave a batch that does not fit its schema");
  const std::int64_t rows = batch.offset + batch.length;
  for (const ChosenColumn& chosen : columns) {
    const ArrowColumn& column = chosen.column;
    const ArrowArray* array = batch.children[column.child];
    std::int64_t cells = rows;
    if (column.list > 0) {
      if (!counts_fit(array) || array->length < rows || array->n_children != 1 || array->n_buffers != 1 ||
          (array->null_count > 0 && array->buffers[0] == nullptr) ||
          array->offset + rows > std::numeric_limits<std::int64_t>::max() / column.list)
        return damaged(column.name, "a list does not fit the batch");
      cells = (array->offset + rows) * column.list;
      array = array->children[0];
    }
    if (!holds(array, column.index.value_or(column.cell), cells))
      return damaged(column.name, "its length or its buffers do not fit the batch");
    if (column.index && !holds(array->dictionary, column.cell, 0))
      return damaged(column.name, "its dictionary is incomplete");
  }
  return {};
}

ColumnReader::ColumnReader(const ArrowArray& batch, const ChosenColumn& chosen)
    : batch_(&batch), list_(nullptr), values_(batch.children[chosen.column.child]), chosen_(&chosen) {
  // Row i of the batch is cell batch.offset + i of its children; value (list.offset + that) size + place of a list.
  start_ = batch.offset;
  step_ = 1;
  if (chosen.column.list > 0) {
    list_ = values_;
    values_ = list_->children[0];
    step_ = chosen.column.list;
    start_ = (list_->offset + batch.offset) * step_ + chosen.column.place;
  }
  nulls_ = may_have_nulls(batch) || may_have_nulls(*values_) || (list_ != nullptr && may_have_nulls(*list_));
}

Result<ColumnReader> ColumnReader::of(const ArrowArray& batch, const ChosenColumn& chosen) {
  ColumnReader reader(batch, chosen);
  if (chosen.column.index && !chosen.tells_people)
    reader.dictionary_ = EIGENVEIL_TRY(meanings(*reader.values_->dictionary, chosen));
  return reader;
}

bool ColumnReader::missing(std::int64_t i) const {
  if (!nulls_) return false;
  const bool cell = values_->n_buffers == 0 || valid(*values_, start_ + i * step_);
  return !cell || !valid(*batch_, i) || (list_ != nullptr && !valid(*list_, batch_->offset + i));
}

Status ColumnReader::read_text(std::int64_t first, std::int64_t count, double* out, std::size_t stride,
                               BadRows bad_rows, const std::string& name, std::size_t row) const {
  const CategoryIndex& categories = *chosen_->categories;
  for (std::int64_t i = 0; i < count; ++i) {
    std::optional<double> found;
    if (missing(first + i)) {
      found = categories.of_number(kMissing);
    } else {
      const auto text = text_at(*values_, chosen_->column.cell, start_ + (first + i) * step_);
      if (!text) return damaged(chosen_->column.name, kBadText);
      found = categories.of_text(*text);
      if (!found && bad_rows == BadRows::kError)
        return unlisted_value(fmt::format("{}: row {}, column '{}'", name, row + i + 1, chosen_->column.name), *text,
                              categories);
    }
    out[i * stride] = found.value_or(kMissing);
  }
  return {};
}

Status ColumnReader::read_indices(std::int64_t first, std::int64_t count, double* out, std::size_t stride,
                                  BadRows bad_rows, const std::string& name, std::size_t row) const {
  copy_numbers(*values_, *chosen_->column.index, start_ + first * step_, step_, count, out, stride);
  for (std::int64_t i = 0; i < count; ++i) {
    double& value = out[i * stride];
    if (missing(first + i)) {
      value = chosen_->categories ? chosen_->categories->of_number(kMissing).value_or(kMissing) : kMissing;
      continue;
    }
    if (!(value >= 0 && value < static_cast<double>(dictionary_.size())))
      return damaged(chosen_->column.name, "an index lies outside its dictionary");
    const auto index = static_cast<std::size_t>(value);
    if (!dictionary_[index] && bad_rows == BadRows::kError) {
      const bool text = is_text(chosen_->column.cell);
      const ArrowArray& dictionary = *values_->dictionary;
      double number = 0;
      if (!text) copy_numbers(dictionary, chosen_->column.cell, static_cast<std::int64_t>(index), 1, 1, &number, 1);
      const std::string shown =
          text ? std::string(*text_at(dictionary, chosen_->column.cell, static_cast<std::int64_t>(index)))
               : fmt::format("{}", number);
      return unlisted_value(fmt::format("{}: row {}, column '{}'", name, row + i + 1, chosen_->column.name), shown,
                            *chosen_->categories);
    }
    value = dictionary_[index].value_or(kMissing);
  }
  return {};
}

Status ColumnReader::read_people(std::int64_t first, std::int64_t count, PersonId* out, const PersonColumn::Key& key,
                                 BadRows bad_rows, const std::string& name, std::size_t row) const {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = {};
    if (missing(first + i)) continue;
    const ArrowArray* cells = values_;
    std::int64_t at = start_ + (first + i) * step_;
    if (chosen_->column.index) {
      double index = 0;
      copy_numbers(*values_, *chosen_->column.index, at, 1, 1, &index, 1);
      cells = values_->dictionary;
      if (!(index >= 0 && index < static_cast<double>(cells->length)))
        return damaged(chosen_->column.name, "an index lies outside its dictionary");
      at = static_cast<std::int64_t>(index);
      if (may_have_nulls(*cells) && !valid(*cells, at)) continue;
    }
    const auto person = person_at(*cells, chosen_->column, at, key, bad_rows);
    if (!person)
      return bad_input(fmt::format("{}: row {}, column {}: {}", name, row + i + 1, in_quotes(chosen_->column.name),
                                   person.error().message));
    out[i] = *person;
  }
  return {};
}

Status ColumnReader::read(std::int64_t first, std::int64_t count, double* out, std::size_t stride, BadRows bad_rows,
                          const std::string& name, std::size_t row) const {
  if (chosen_->column.index) return read_indices(first, count, out, stride, bad_rows, name, row);
  if (is_text(chosen_->column.cell)) return read_text(first, count, out, stride, bad_rows, name, row);
  copy_numbers(*values_, chosen_->column.cell, start_ + first * step_, step_, count, out, stride);
  if (nulls_)
    for (std::int64_t i = 0; i < count; ++i)
      if (missing(first + i)) out[i * stride] = kMissing;
  if (!chosen_->categories) return {};
  for (std::int64_t i = 0; i < count; ++i) {
    double& value = out[i * stride];
    const auto found = chosen_->categories->of_number(value);
    if (!found && bad_rows == BadRows::kError)
      return unlisted_value(fmt::format("{}: row {}, column '{}'", name, row + i + 1, chosen_->column.name),
                            fmt::format("{}", value), *chosen_->categories);
    value = found.value_or(kMissing);
  }
  return {};
}

}  // namespace eigenveil::data
