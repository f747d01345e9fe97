// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/data/given_rows.hpp"
#include "eigenveil/intake/center.hpp"
#include "eigenveil/intake/class_column.hpp"
#include "eigenveil/intake/pairs.hpp"
#include "eigenveil/intake/person.hpp"
#include "eigenveil/intake/response.hpp"
#include "eigenveil/rows/bounded_rows.hpp"

namespace eigenveil {

/// For processes that each hold rows of the same people.
struct PeopleElsewhere {
  PersonColumn::Key key;              ///< that all of them hash ids with
  decltype(PersonRule::share) share;  ///< of people.hpp
};

/// How a user describes the rows to work on. Nothing here comes from the rows themselves.
struct RowOptions {
  std::string data;  ///< path of the file; empty: the rows are given, or elsewhere, and then the columns are named
  std::optional<std::string> schema;  ///< TOML file of column bounds; not together with ranges
  std::vector<std::string> ranges;    ///< "LO:HI" for all columns, "COLUMN=LO:HI" for one
  std::optional<RowBound> row_bound;  ///< default: the longest row that the ranges allow
  /// Shorten rows to a bound that is found privately, below row_bound or the ranges'; default: where none is stated.
  std::optional<bool> find_row_bound = {};
  Center center = Center::kUsual;
  MissingPolicy missing = MissingPolicy::kError;
  SourceOptions source;                          ///< columns, header, delimiter, member
  std::optional<ClassColumn> class_column = {};  ///< for fits that sort rows into classes
  std::vector<std::string> first_view = {};      ///< for fits of two views: the columns of the one
  std::vector<std::string> second_view = {};     ///< and of the other; all others are left out
  std::optional<Response> response = {};         ///< for fits that explain a column
  std::optional<Schema> bounds = {};             ///< a schema that is no file; not together with `schema` or ranges
  std::optional<PairReading> pairs =
      {};  ///< rows that are pairs of two views; of the above only `missing` applies then
  std::shared_ptr<GivenRows> given = {};     ///< rows that the caller opened, instead of `data`
  std::optional<PersonOptions> person = {};  ///< whose rows they are; none: every row is somebody's only one
  std::shared_ptr<const PeopleElsewhere> people_elsewhere = {};  ///< where others hold rows of the same people
};

/// Nobody here can read the rows: others hold them.
bool elsewhere(const RowOptions& options);
/// A search finds how long rows may be: because somebody said so, or because nobody stated it.
bool finds_row_bound(const RowOptions& options);
/// What messages call the place that rows come from.
std::string place_of(const RowOptions& options);
/// Whether rows came with the call instead of from files: then nobody else can read them.
bool in_memory(const RowOptions& options);

class Engine;

struct RunOptions {
  int threads = 0;                             ///< 0: as many as the machine has cores
  std::size_t memory = std::size_t{2} << 30;   ///< bytes that the process may keep resident
  std::optional<std::uint64_t> insecure_seed;  ///< repeatable noise: the release is then not private
  std::shared_ptr<Engine> engine = {};         ///< who holds the rows (engine.hpp); none: this process
};

/// What options and schema together state about a file.
struct FileFacts {
  SourceOptions source;  ///< with the schema's columns, if there is one
  std::optional<Schema> schema;
};
Result<FileFacts> file_facts(const RowOptions& options);

/// The column map and the raw column names that the options describe, before any row is read.
struct OpenedData {
  std::unique_ptr<RowSource> source;  ///< none if the rows are elsewhere
  ColumnMap map;
  std::vector<std::string> classes = {};  ///< the class column is the last one of the source, and not in the map
  std::string class_name = {};            ///< of the class column
  std::vector<double> cuts = {};          ///< of the class column, if its classes are slices
  std::size_t first_view = 0;             ///< how many raw columns the first view has; they come first
  SourceOptions read_with = {};           ///< how the source was opened
  std::shared_ptr<const PairInputs> pairs = {};
  std::optional<ResponseShares> shares = {};  ///< where the last column is a response
  std::string person = {};                    ///< name of the column that says whose row it is
};
/// Opens the file, the only time in a fit: what is read later is what was opened here.
Result<OpenedData> open_data(const RowOptions& options, int threads = 1);

/// The bound that rows are shortened to when they are read.
Result<RowBound> first_bound(const RowOptions& options, const ColumnMap& map);

/// Reads and bounds the rows of an opened file, to their end. `reserved` bytes of the memory are left for the
/// estimator's own sums.
Result<BoundedRows> bound_rows(OpenedData& opened, const RowOptions& options, const RunOptions& run,
                               std::size_t reserved, Observer& observer);

/// Opens a file and does the same.
Result<BoundedRows> bound_rows(const RowOptions& options, const RunOptions& run, std::size_t reserved,
                               Observer& observer);

int thread_count(const RunOptions& run);

}  // namespace eigenveil
