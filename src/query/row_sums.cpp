// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/row_sums.hpp"

namespace eigenveil {
namespace {

class LocalSums final : public RowSums {
 public:
  explicit LocalSums(BoundedRows rows) : rows_(std::move(rows)) {}
  const BoundedRows& here() const override { return rows_; }
  std::size_t rows() const override { return rows_.units(); }
  bool alone() const override { return true; }
  Result<PrivateSum> sum(const SumQuery& query, Adjacency adjacency) override {
    return exact_sum(query, rows_, adjacency);
  }
  Result<PrivateCounts> counts(const NormExceedance& query) override { return exact_counts(query, rows_); }
  Result<FilteredCells> cells(const FilteredApply& query) override { return FilteredCells::sweep(query, rows_); }
  Status recenter(const Vector& mean, RowBound radius) override { return rows_.recenter(mean, radius); }
  Status remap(const LinearMap& M, RowBound radius) override { return rows_.remap(M, radius); }

 private:
  BoundedRows rows_;
};

}  // namespace

std::unique_ptr<RowSums> sums_of(BoundedRows rows) { return std::make_unique<LocalSums>(std::move(rows)); }

}  // namespace eigenveil
