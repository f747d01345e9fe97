// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <vector>

namespace eigenveil {

/// The tensors that a module keeps from call to call (constants of the methods' graphs, parameters, buffers,
/// attributes), in memory that the kernel lets nobody write from then on: whatever the graph check took an alias for, a
/// write to them ends the process. `trained` are left alone: they are set anew before every call.
class FixedTensors {
 public:
  FixedTensors(const torch::jit::Module& module, const std::vector<std::string>& methods,
               const std::vector<at::Tensor>& trained = {});
  /// Throws if a call has left one of them with another shape, type or place.
  void check() const;

 private:
  struct Kept {
    at::Tensor tensor;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
    const void* data;
    c10::ScalarType type;
    bool wants_gradient;
  };
  std::vector<Kept> kept_;
};

}  // namespace eigenveil
