// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/table.hpp"
#include "element.hpp"
#include "stream.hpp"

namespace eigenveil::data {

/// Readers fetch at most about this much at a time.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct ArrayShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// The rows of one array, in order.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  /// The next `rows` rows, of each the given columns, row-major to `out`.
  virtual Status read(std::size_t rows, const std::vector<std::size_t>& columns, double* out) = 0;
  /// Moves over that many rows, which are there.
  virtual Status skip(std::size_t rows) = 0;
  /// Called after the last row: what must hold at the end.
  virtual Status finish() { return {}; }
  virtual double progress() const = 0;
  /// Integers below this are exact in the type that the numbers are stored in.
  virtual double exact_below() const { return 0x1p53; }
  /// How many rows to ask for at once, if `most` of them have about kPieceBytes.
  virtual std::size_t rows_at_once(std::size_t most) const { return most; }
};

/// rows x the product of the other dimensions. Refuses arrays without columns (unless `no_columns`), more columns than
/// we can name, and sizes that overflow.
Result<ArrayShape> array_shape(const std::string& name, const std::vector<std::uint64_t>& dimensions,
                               std::size_t element_size, bool no_columns = false);

/// The size of the file must be what the header announces.
Status expect_size(const std::string& name, std::uint64_t header, const ArrayShape& shape, std::size_t element_size,
                   std::uint64_t actual);

/// Row after row from a stream that stands at the first element.
std::unique_ptr<ArrayReader> row_order_reader(std::unique_ptr<ByteStream> stream, const ArrayShape& shape,
                                              const ElementType& type);

/// Reads `size` bytes at `offset` from the first element.
using FetchBytes = std::function<Status(std::uint64_t offset, char* to, std::size_t size)>;
/// Column after column (Fortran order): every batch gathers a stripe of each column.
std::unique_ptr<ArrayReader> column_order_reader(FetchBytes fetch, const ArrayShape& shape, const ElementType& type);

/// A table over an array.
Table array_table(const std::string& name, const ArrayShape& shape, std::unique_ptr<ArrayReader> reader);

}  // namespace eigenveil::data
