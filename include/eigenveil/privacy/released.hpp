// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace eigenveil {

/// A value that went through a mechanism and may be published. Only the mechanisms of the privacy room can make one;
/// whatever is computed from it is post-processing.
template <class T>
class Released {
 public:
  const T& value() const { return value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  friend class GaussianMechanism;
  friend class SparseVector;
  friend class NoisyHistogram;
  explicit Released(T value) : value_(std::move(value)) {}
  T value_;
};

}  // namespace eigenveil
