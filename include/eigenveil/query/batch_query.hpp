#pragma once

#include <functional>
#include <vector>

#include "eigenveil/privacy/gaussian_mechanism.hpp"

namespace eigenveil {

/// Rows of a batch, in the features' units. Private.
struct Batch {
  RowMajorMatrix rows;
  std::vector<std::int32_t> classes;  ///< one a row, if rows have classes
};

/// A function of a whole batch, for losses in which every row meets every other, so that they are no sums over rows:
/// integers that one row more in a batch moves by at most `sensitivity`, whatever the batch.
class BatchQuery {
 public:
  virtual ~BatchQuery() = default;
  virtual Result<PrivateSum> exact(const Batch& batch) const = 0;
  virtual Sensitivity sensitivity() const = 0;
  virtual double unit() const = 0;  ///< the value of one lattice step
};

/// Any function of the batch, scaled to norm <= clip once it is computed: privacy/noisy_vector.proof.md.
class ClippedBatch final : public BatchQuery {
 public:
  using Function = std::function<Vector(const Batch&)>;
  ClippedBatch(Function function, double clip) : function_(std::move(function)), clip_(clip) {}
  Result<PrivateSum> exact(const Batch& batch) const override;
  Sensitivity sensitivity() const override;
  double unit() const override;

 private:
  Function function_;
  double clip_;
};

/// Larger expected batches are refused: no query has to be exact for batches that practically never occur.
inline constexpr double kLargestExpectedBatch = 4096;
inline constexpr std::size_t kLargestBatch = 1 << 15;

}  // namespace eigenveil
