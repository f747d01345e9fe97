// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "eigenveil/privacy/gaussian_mechanism.hpp"

namespace eigenveil {

/// Rows of a batch, in the features' units. Private.
struct Batch {
  RowMajorMatrix rows;
  std::vector<std::int32_t> classes;  ///< one per row, if rows have classes
};

/// A function of a whole batch, for losses in which every row meets every other, so that they are no sums over rows:
/// integers that one row more in a batch moves by at most their sensitivity, whatever the batch.
class BatchQuery {
 public:
  virtual ~BatchQuery() = default;
  virtual Result<PrivateSum> exact(const Batch& batch) const = 0;
  /// Of what `exact` gives, for any batch.
  virtual Sensitivity sensitivity() const = 0;
};

/// Any function of the batch, scaled to norm <= clip once it is computed: privacy/noisy_vector.proof.md.
class ClippedBatch final : public BatchQuery {
 public:
  using Function = std::function<Vector(const Batch&)>;
  ClippedBatch(Function function, double clip) : function_(std::move(function)), clip_(clip) {}
  Result<PrivateSum> exact(const Batch& batch) const override;
  Sensitivity sensitivity() const override;

 private:
  Function function_;
  double clip_;
};

/// Of a larger batch the rows that come later are left out, where a query can bear that: ClippedBatch can, whose
/// sensitivity holds for any function of the batch.
inline constexpr std::size_t kLargestBatch = 1 << 13;

}  // namespace eigenveil
