// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/arrow.hpp"
#include "selection.hpp"

namespace eigenveil::data {

/// What a cell of an Arrow array is, as far as rows can be made of it.
enum class ArrowCell : std::uint8_t {
  kNull,
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kText,      ///< offsets of 32 bits
  kLongText,  ///< of 64 bits
  kTextView,
  kOther
};

/// One column of rows, in a record batch.
struct ArrowColumn {
  std::string name;
  std::string format;                   ///< as the stream states it, for messages
  ArrowCell cell = ArrowCell::kOther;   ///< of the values; of a dictionary, of what the indices stand for
  std::optional<ArrowCell> index = {};  ///< a dictionary: of its indices
  std::size_t child = 0;                ///< of the record batch
  std::int64_t list = 0;                ///< how many values a list of fixed size has; 0: this is no list
  std::int64_t place = 0;               ///< among those
};

/// The columns that a stream's schema describes. Refuses what is no table.
Result<std::vector<ArrowColumn>> arrow_columns(const ArrowSchema& schema);

/// A column that was chosen, and the public list of its values, if it has one.
struct ChosenColumn {
  ArrowColumn column;
  std::optional<CategoryIndex> categories;
  bool tells_people = false;  ///< says whose rows they are: `read_people` alone reads it
};

/// Refuses a column that no rows can be made of: by its type alone.
Status check_column(const ChosenColumn& chosen);

/// Refuses a record batch whose lengths, buffers and children do not fit its columns.
Status check_batch(const ArrowArray& batch, std::int64_t children, const std::vector<ChosenColumn>& columns);

/// The cells of one column in one record batch, ready to be read.
class ColumnReader {
 public:
  /// Looks the values of a dictionary up, once. The batch was checked, and lives as long as the reader.
  static Result<ColumnReader> of(const ArrowArray& batch, const ChosenColumn& chosen);

  /// Rows first to first + count - 1 of the batch, `stride` numbers apart. What a list does not have is an error, or
  /// missing. `row`: number of the first one in the stream, for messages.
  Status read(std::int64_t first, std::int64_t count, double* out, std::size_t stride, BadRows bad_rows,
              const std::string& name, std::size_t row) const;

  /// Whose these rows are: by text or by an integer, of which all digits count.
  Status read_people(std::int64_t first, std::int64_t count, PersonId* out, const PersonColumn::Key& key,
                     BadRows bad_rows, const std::string& name, std::size_t row) const;

 private:
  ColumnReader(const ArrowArray& batch, const ChosenColumn& chosen);
  Status read_text(std::int64_t first, std::int64_t count, double* out, std::size_t stride, BadRows bad_rows,
                   const std::string& name, std::size_t row) const;
  Status read_indices(std::int64_t first, std::int64_t count, double* out, std::size_t stride, BadRows bad_rows,
                      const std::string& name, std::size_t row) const;
  bool missing(std::int64_t i) const;

  const ArrowArray* batch_;
  const ArrowArray* list_;  // null: no list
  const ArrowArray* values_;
  const ChosenColumn* chosen_;
  std::int64_t start_, step_;                      // row i of the batch is the cell start + i step of the values
  bool nulls_;                                     // whether any can be null
  std::vector<std::optional<double>> dictionary_;  // what its values mean; nothing: not listed
};

}  // namespace eigenveil::data
