// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"
#include "eigenveil/data/person.hpp"

namespace eigenveil {

/// Raw, private rows as a file holds them: row-major, one double per entry. A missing value is NaN; a categorical
/// entry is the index of its value in the schema's list.
struct RawBatch {
  std::size_t first_row = 0;  ///< 0-based number of the first row in the file, for error messages
  std::size_t rows = 0;
  std::vector<double> values;    ///< rows x columns of the source
  std::vector<PersonId> people;  ///< one per row, if a person's column was named
};

/// The public list of values of one categorical column.
struct Categories {
  std::string column;
  std::vector<std::string> values;
  std::optional<std::size_t> other = {};  ///< index into `values` that stands for every value not listed
};

/// A stream of raw rows. Not thread-safe: one reader, one thread.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Names of the columns that `next` yields, in order. A file without names numbers them "1", "2", ...
  virtual const std::vector<std::string>& columns() const = 0;

  /// Overwrites `batch` with up to `max_rows` further rows; `batch.rows == 0` means the end.
  virtual Status next(RawBatch& batch, std::size_t max_rows) = 0;

  /// Moves over that many rows, or to the end. Reads and forgets them where the format allows nothing better.
  virtual Status skip(std::size_t rows);

  /// The file that the last batch came from, where there are several; row numbers are those of this file.
  virtual std::string part() const { return {}; }

  /// How many rows the file says it has, if it says so before it is read (NPY, IDX, HDF5).
  virtual std::optional<std::size_t> rows_announced() const = 0;

  /// Share of the file read so far, in [0, 1], for progress bars.
  virtual double progress() const = 0;

  /// Integers below this were not rounded before they became values of a batch: ids of people are refused from there.
  virtual double exact_below() const { return 0x1p53; }
};

/// Whether the first line of a CSV file holds column names. It is a public fact that somebody states: a rule that looks
/// at the line would publish a record for a name, or take names for a record.
enum class HeaderRule : std::uint8_t { kUnstated, kYes, kNo };

/// What becomes of a row that cannot be read: text in a number column, a value that no list has, a line with too few or
/// too many fields or none, text behind a closing quote; a damaged image, or one of another size.
enum class BadRows : std::uint8_t {
  kError,    ///< the file is refused, in words for its operator
  kMissing,  ///< what cannot be read is missing (NaN); of a line that is malformed everything is
};

/// One of several shares of the rows, that together have each row once.
struct Share {
  std::size_t index = 0;  ///< from 0
  std::size_t count = 1;
  /// Plain CSV is cut at line ends near equal numbers of bytes. If a cut falls inside a quoted field, the share before
  /// it is refused as malformed; row numbers count from the cut. False: read all of it, keep every count-th block.
  bool cut_text = false;
};

/// How to open a data file: facts about it that are public, and none that is found out from its rows.
struct SourceOptions {
  /// Names or 1-based positions or position ranges ("1-50") to keep, in this order; empty: all.
  std::vector<std::string> columns = {};
  std::vector<Categories> categories = {};    ///< columns to be read as categories
  std::optional<PersonColumn> person = {};    ///< whose row it is; not among the columns
  HeaderRule header = HeaderRule::kUnstated;  ///< CSV: refused if unstated
  char delimiter = '\0';                      ///< CSV; '\0': not stated, a comma
  /// CSV without a header, images: values of each row. 0: as the first of at least two has, with BadRows::kError.
  std::size_t fields = 0;
  BadRows bad_rows = BadRows::kError;
  std::string member = {};  ///< array inside an NPZ, or data set path inside an HDF5 file; empty: the only one
  Share share = {};         ///< the rows to read; part files of a folder are dealt out whole
  bool colour = false;      ///< folders of images: red, then green, then blue, instead of grey
  int threads = 1;          ///< folders of images: how many of them decode
  /// Folders of images: height and width that are stated; none: those of the first file.
  std::optional<std::pair<std::size_t, std::size_t>> image_shape = {};
};

/// Opens CSV, CSV.gz, NPY, NPZ, IDX, IDX.gz or HDF5, told apart by content and name. At most 1,000,000 columns.
///
/// A pipe can hold what is read from beginning to end: CSV, NPY, IDX, packed or not. It is opened once, for good.
///
/// A folder is read as one table: its files in the order of their names (but for those that begin with a dot or an
/// underscore), which must have the same columns.
///
/// A folder with files named .png, .jpg or .jpeg (in any case) has an image per row, in the order of the files' names
/// (by bytes; those that begin with a dot are skipped), all of one size, of at most 1,000,000 values. What a pixel is:
/// src/data/image_file.hpp.
///
/// Missing (NaN): an empty field, "?", and NA, NaN or null in any case; in a categorical column too, unless its list
/// has that very text. Blanks around unquoted CSV fields do not count. Every line of a CSV file is a row (or part of
/// one that is quoted), a blank one too: it has no value at all.
///
/// Memory: a few megabytes beside the batch, whatever the size of the file. Exceptions: a CSV row may take up to 64
/// MiB, the chunks of an HDF5 data set that one row crosses up to 64 MiB, and an array in Fortran order inside NPZ or
/// gzip or from a pipe is held as a whole, up to 256 MiB; anything larger is refused. Plain NPY files have no such
/// limit in either order.
///
/// HDF5 files are decoded by libhdf5, which trusts packed chunks more than it should: open only those of people you
/// know.
///
/// Arrays of more than two dimensions keep the first as rows and flatten the others into columns for IDX; elsewhere
/// they are refused.
Result<std::unique_ptr<RowSource>> open_source(const std::string& path, const SourceOptions& options);

/// For the operator alone: the first line of a CSV file (of the first one in a folder) whose options leave its header
/// unstated, up to some hundred bytes. Nothing if the options or the format say enough, and of a pipe, which is read
/// once.
Result<std::optional<std::string>> unstated_first_line(const std::string& path, const SourceOptions& options);

/// Whether a path names a pipe, whose rows come once and leave nothing to know them by.
bool is_pipe(const std::string& path);

/// True for what `Share::cut_text` makes a difference to: one plain CSV file.
bool is_plain_text(const std::string& path);

}  // namespace eigenveil
