// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/batch_query.hpp"

#include <span>

#include "eigenveil/privacy/noisy_vector.hpp"

namespace eigenveil {

Result<PrivateSum> ClippedBatch::exact(const Batch& batch) const {
  const Eigen::Index most = kLargestBatch;
  const bool large = batch.rows.rows() > most;
  const auto first = [&] {
    Batch part{batch.rows.topRows(most), batch.classes};
    if (!part.classes.empty()) part.classes.resize(kLargestBatch);
    return part;
  };
  const Vector v = large ? function_(first()) : function_(batch);
  return NoisyVector::on_lattice({v.data(), static_cast<std::size_t>(v.size())}, clip_);
}

Sensitivity ClippedBatch::sensitivity() const { return NoisyVector::sensitivity(); }

}  // namespace eigenveil
