// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/query/filtered.hpp"

namespace eigenveil {

/// Exact sums over all rows of one owner, before noise, whichever processes hold them. The same rows give the same
/// integers, however they are divided.
class RowSums {
 public:
  virtual ~RowSums() = default;

  /// The rows of this process: all of them, or a share.
  virtual const BoundedRows& here() const = 0;
  /// How many rows there are in all or, where they have people, how many people.
  virtual std::size_t rows() const = 0;

  /// Whether this process holds all of them, and would whatever they were.
  virtual bool alone() const = 0;

  virtual Result<PrivateSum> sum(const SumQuery& query, Adjacency adjacency) = 0;
  virtual Result<PrivateCounts> counts(const NormExceedance& query) = 0;
  virtual Result<FilteredCells> cells(const FilteredApply& query) = 0;
  virtual Status recenter(const Vector& mean, RowBound radius) = 0;
  virtual Status remap(const LinearMap& M, RowBound radius) = 0;
};

/// Rows that this process holds alone.
std::unique_ptr<RowSums> sums_of(BoundedRows rows);

}  // namespace eigenveil
