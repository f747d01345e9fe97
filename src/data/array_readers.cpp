// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "array.hpp"
#include "selection.hpp"

namespace eigenveil::data {
namespace {

class RowOrderReader final : public ArrayReader {
 public:
  RowOrderReader(std::unique_ptr<ByteStream> stream, const ArrayShape& shape, const ElementType& type)
      : stream_(std::move(stream)), type_(type), row_bytes_(shape.columns * type.size) {}

  Status read(std::size_t rows, const std::vector<std::size_t>& columns, double* out) override {
    const std::size_t most = std::max<std::size_t>(1, kPieceBytes / row_bytes_);
    while (rows > 0) {
      const std::size_t piece = std::min(rows, most);
      bytes_.resize(piece * row_bytes_);
      EIGENVEIL_TRY(read_exactly(*stream_, bytes_.data(), bytes_.size(), "array"));
      with_loader(type_, [&](const auto& load) {
        for (std::size_t r = 0; r < piece; ++r)
          for (std::size_t column : columns) *out++ = load(bytes_.data() + r * row_bytes_ + column * type_.size);
      });
      rows -= piece;
    }
    return {};
  }
  Status skip(std::size_t rows) override { return stream_->skip(std::uint64_t{rows} * row_bytes_); }
  Status finish() override { return expect_end(*stream_); }
  double progress() const override { return stream_->progress(); }
  double exact_below() const override { return data::exact_below(type_); }

 private:
  std::unique_ptr<ByteStream> stream_;
  ElementType type_;
  std::size_t row_bytes_;
  std::vector<char> bytes_;
};

class ColumnOrderReader final : public ArrayReader {
 public:
  ColumnOrderReader(FetchBytes fetch, const ArrayShape& shape, const ElementType& type)
      : fetch_(std::move(fetch)), shape_(shape), type_(type) {}

  Status read(std::size_t rows, const std::vector<std::size_t>& columns, double* out) override {
    const std::size_t most = kPieceBytes / type_.size;
    while (rows > 0) {
      const std::size_t piece = std::min(rows, most);
      bytes_.resize(piece * type_.size);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        // element (r, c) of an R x C array in Fortran order lies at c R + r
        EIGENVEIL_TRY(fetch_((columns[c] * shape_.rows + done_) * type_.size, bytes_.data(), bytes_.size()));
        with_loader(type_, [&](const auto& load) {
          for (std::size_t r = 0; r < piece; ++r) out[r * columns.size() + c] = load(bytes_.data() + r * type_.size);
        });
      }
      out += piece * columns.size();
      done_ += piece;
      rows -= piece;
    }
    return {};
  }
  Status skip(std::size_t rows) override {
    done_ += rows;
    return {};
  }
  double progress() const override {
    return shape_.rows == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(shape_.rows);
  }
  double exact_below() const override { return data::exact_below(type_); }

 private:
  FetchBytes fetch_;
  ArrayShape shape_;
  ElementType type_;
  std::size_t done_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

Result<ArrayShape> array_shape(const std::string& name, const std::vector<std::uint64_t>& dimensions,
                               std::size_t element_size, bool no_columns) {
  ArrayShape shape{dimensions[0], 1};
  for (std::size_t i = 1; i < dimensions.size(); ++i) {
    if (dimensions[i] == 0 && !no_columns)
      return bad_input(fmt::format("{}: has 0 columns; there is nothing to learn from", name));
    if (__builtin_mul_overflow(shape.columns, dimensions[i], &shape.columns)) shape.columns = SIZE_MAX;
    if (shape.columns > kMostColumns)
      return bad_input(
          fmt::format("{}: announces more than {} columns, which is the most that can be read; is the header "
                      "damaged?",
                      name, kMostColumns));
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
  if (shape.rows >
      kMostBytes / (std::max<std::size_t>(1, shape.columns) * std::max<std::size_t>(element_size, sizeof(double))))
    return bad_input(
        fmt::format("{}: announces {} rows of {} columns, more than any file can hold; is the header damaged?", name,
                    shape.rows, shape.columns));
  return shape;
}

Status expect_size(const std::string& name, std::uint64_t header, const ArrayShape& shape, std::size_t element_size,
                   std::uint64_t actual) {
  const std::uint64_t expected = header + std::uint64_t{shape.rows} * shape.columns * element_size;
  if (actual == expected) return {};
  return bad_input(fmt::format("{}: is {}: its header announces {} rows of {} columns, {} bytes in all, but it has {}",
                               name, actual < expected ? "truncated" : "longer than announced", shape.rows,
                               shape.columns, expected, actual));
}

std::unique_ptr<ArrayReader> row_order_reader(std::unique_ptr<ByteStream> stream, const ArrayShape& shape,
                                              const ElementType& type) {
  return std::make_unique<RowOrderReader>(std::move(stream), shape, type);
}

std::unique_ptr<ArrayReader> column_order_reader(FetchBytes fetch, const ArrayShape& shape, const ElementType& type) {
  return std::make_unique<ColumnOrderReader>(std::move(fetch), shape, type);
}

}  // namespace eigenveil::data
