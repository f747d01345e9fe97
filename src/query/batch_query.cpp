#include "eigenveil/query/batch_query.hpp"

#include <span>

#include "eigenveil/privacy/noisy_vector.hpp"

namespace eigenveil {

Result<PrivateSum> ClippedBatch::exact(const Batch& batch) const {
  const Vector v = function_(batch);
  return NoisyVector::on_lattice({v.data(), static_cast<std::size_t>(v.size())}, clip_);
}

Sensitivity ClippedBatch::sensitivity() const { return NoisyVector::sensitivity(); }

double ClippedBatch::unit() const { return NoisyVector::unit(clip_); }

}  // namespace eigenveil
