// SPDX-License-Identifier: Apache-2.0
#include "fixed.hpp"

#include <sys/mman.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "graph_check.hpp"
#include "modules.hpp"

namespace eigenveil {
namespace {

std::vector<at::Tensor> tensors_of(const torch::jit::Module& module, const std::vector<std::string>& methods) {
  std::vector<at::Tensor> found;
  c10::IValue(module._ivalue()).visit([&](const c10::IValue& part) {
    if (part.isTensor() && part.toTensor().defined()) found.push_back(part.toTensor());
    return false;
  });
  for (const std::string& method : methods)
    for_each_node(module.get_method(method).graph()->block(), [&](torch::jit::Node* node) {
      if (node->kind() != c10::prim::Constant) return;
      const auto value = torch::jit::toIValue(node->output());
      if (!value) return;
      value->visit([&](const c10::IValue& part) {
        if (part.isTensor() && part.toTensor().defined()) found.push_back(part.toTensor());
        return false;
      });
    });
  return found;
}

}  // namespace

FixedTensors::FixedTensors(const torch::jit::Module& module, const std::vector<std::string>& methods,
                           const std::vector<at::Tensor>& trained) {
  auto tensors = tensors_of(module, methods);
  const auto is_trained = [&](const at::Tensor& tensor) {
    return std::any_of(trained.begin(), trained.end(),
                       [&](const at::Tensor& other) { return other.is_alias_of(tensor); });
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_trained), tensors.end());
  std::map<c10::StorageImpl*, std::size_t> places;
  std::size_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.has_storage() || !tensor.device().is_cpu() || tensor.is_quantized())
      throw Refusal("keeps numbers that are no plain tensor (sparse, quantized or packed)");
    if (!places.emplace(tensor.storage().unsafeGetStorageImpl(), total).second) continue;
    total += channel::aligned(tensor.storage().nbytes());
  }
  if (total > 0) {
    void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Refusal("needs more memory than `memory` allows");
    for (const auto& [storage, at] : places) {
      char* to = static_cast<char*>(memory) + at;
      if (storage->nbytes() > 0) std::memcpy(to, storage->data(), storage->nbytes());
      storage->set_data_ptr_noswap(at::DataPtr(to, c10::Device(c10::DeviceType::CPU)));  // stays while the process does
      storage->set_resizable(false);
    }
    if (mprotect(memory, total, PROT_READ) != 0) throw Refusal("cannot be kept from writing to its own numbers");
  }
  for (const at::Tensor& tensor : tensors)
    kept_.push_back({tensor, tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset(),
                     tensor.storage().data(), tensor.scalar_type(), tensor.requires_grad()});
}

void FixedTensors::check() const {
  for (const Kept& kept : kept_) {
    const at::Tensor& now = kept.tensor;
    if (now.sizes() != kept.sizes || now.strides() != kept.strides || now.storage_offset() != kept.offset ||
        now.storage().data() != kept.data || now.scalar_type() != kept.type ||
        now.requires_grad() != kept.wants_gradient)
      throw std::runtime_error("a call changes the module itself");
  }
}

}  // namespace eigenveil
