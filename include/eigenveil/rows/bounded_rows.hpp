// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/column_map.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/rows/chunk_store.hpp"
#include "eigenveil/rows/lattice.hpp"
#include "eigenveil/rows/linear_map.hpp"
#include "eigenveil/rows/missing_policy.hpp"
#include "eigenveil/rows/people.hpp"

namespace eigenveil {

/// Called with the share of the work done, in [0, 1].
using Progress = std::function<void(double)>;

struct BoundingOptions {
  RowBound bound;
  int bits = 20;  ///< finer lattices cost nothing; fewer bits only serve tests
  MissingPolicy missing = MissingPolicy::kError;
  std::size_t memory_bytes = std::size_t{2} << 30;
  std::string spill_folder;
  std::size_t chunk_rows = 0;
  std::optional<std::size_t> class_column;  ///< raw column that holds the row's class index (a categorical column)
  std::size_t classes = 0;     ///< how many there are; a row of a class beyond is refused, or dropped. 0: any
  bool drop_unlisted = false;  ///< such a row counts as the zero row, of no class
  std::optional<PersonRule> person = {};  ///< the source tells whose rows they are
  int threads = 1;
};

/// What bounding did to the rows. Private: for the operator's terminal alone, never for a file.
struct BoundingDiagnostics {
  std::size_t rows = 0;  ///< of people: how many there are
  std::size_t shortened = 0;
  std::size_t zeroed = 0;
  bool one_row_each = false;  ///< no person has two rows
};

/// What is public about bounded rows: whatever is refused or laid out before an answer is decided by this alone.
struct RowsFacts {
  std::size_t columns;
  Lattice lattice;
  bool classes;                ///< every row has a class, or is known to have none
  bool total_private = false;  ///< what all rows weigh together is no public number even if that of units is
};

/// Rows that lie together and weigh the same, in 2^-weight_bits of the lattice.
struct WeightRun {
  std::size_t first;
  std::uint64_t weight;
};

/// Private rows after they were bounded and quantised: the only rows an oracle takes. Every row has ||u|| <= 2^bits in
/// exact integers. Immutable but for `recenter` and `remap`, which map each row by a public function of itself. Rows of
/// people lie together by how many rows their person has, and weigh accordingly.
class BoundedRows {
 public:
  /// Reads, maps, bounds and quantises a whole source. Nothing is charged or released by it.
  static Result<BoundedRows> read(RowSource& source, const ColumnMap& map, const BoundingOptions& options,
                                  const Progress& progress = {});

  const ChunkStore& store() const { return store_; }
  std::size_t columns() const { return store_.columns(); }
  std::size_t rows() const { return store_.rows(); }
  /// How many people or, where rows are nobody's, rows there are: what neighbours have one of. Of a person whose rows
  /// several processes hold, one of these counts them.
  std::size_t units() const { return weighted() ? people_ : rows(); }
  bool weighted() const { return lattice_.weight_bits > 0; }
  /// Of rows of people, in ascending order of `first`; private.
  const std::vector<WeightRun>& runs() const { return runs_; }
  /// Whose row each one is, and how many rows a person has; private. None unless the rule wants them numbered.
  const std::vector<std::uint32_t>& person() const { return person_; }
  const std::vector<std::uint32_t>& rows_of() const { return rows_of_; }
  std::size_t least_rows() const { return least_rows_; }
  const Lattice& lattice() const { return lattice_; }
  RowsFacts facts() const { return {columns(), lattice_, classed_, least_rows_ > 1}; }
  /// One per row, if a class column was named; -1: of no class
  const std::vector<std::int32_t>& classes() const { return classes_; }
  const BoundingDiagnostics& diagnostics() const { return diagnostics_; }
  int threads() const { return threads_; }

  /// Replaces every row a by bound(a - mean, radius): a public map of each row by itself, so neighbours stay
  /// neighbours. `mean` and `radius` must be public or released.
  Status recenter(const Vector& mean, RowBound radius);

  /// Replaces every row a by bound(M^T a, radius), M square: likewise.
  Status remap(const LinearMap& M, RowBound radius);

 private:
  // Replaces the rows of each chunk; `map(rows, count, out)` fills features in their own units, on several threads.
  template <class Map>
  Status replace(RowBound radius, const Map& map);

  Status group(std::unique_ptr<const PersonIds> ids, const PersonRule& rule, const ChunkStore::Options& storing);
  Result<ChunkStore> numbered_counts(const PersonIds& ids, const PersonRule& rule);
  Status move_rows(const ChunkStore& rows_with, const ChunkStore::Options& storing);

  BoundedRows(ChunkStore store, Lattice lattice, int threads)
      : store_(std::move(store)), lattice_(lattice), threads_(threads) {}

  ChunkStore store_;
  Lattice lattice_;
  std::vector<std::int32_t> classes_;
  bool classed_ = false;
  std::vector<std::size_t> zeroed_;  // rows that are zero for want of a value: they stay so when recentred
  BoundingDiagnostics diagnostics_;
  int threads_;
  std::vector<WeightRun> runs_;
  std::vector<std::uint32_t> person_;
  std::vector<std::uint32_t> rows_of_;
  std::size_t people_ = 0;
  std::size_t least_rows_ = 1;
};

}  // namespace eigenveil
