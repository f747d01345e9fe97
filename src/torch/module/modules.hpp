// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "../channel.hpp"

namespace eigenveil {

/// A sentence about what the module is not, made before any row was seen.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A loss or a feature that is no number.
struct NotFinite : std::runtime_error {
  NotFinite() : std::runtime_error("not finite") {}
};
struct TooLarge : std::runtime_error {
  TooLarge() : std::runtime_error("too large") {}
};

/// Room for an answer in the memory.
struct Answer {
  char* to;
  std::size_t capacity;
  std::size_t bytes = 0;
  void add(const void* data, std::size_t count);
};

/// The part of a request that one of several forks takes.
struct Part {
  std::uint32_t fork;
  std::uint32_t forks;
};

/// What a process was opened for. On private rows `work` runs in a fork.
class Opened {
 public:
  virtual ~Opened() = default;
  virtual void work(const channel::Request& request, channel::Pieces pieces, Part part, Answer& answer) = 0;
};

/// module, method -> name of the method that will be called
std::unique_ptr<Opened> open_encoder(channel::Pieces pieces, Answer& answer);
/// module, marked module, loss module, settings -> JSON of the parameters, their values
std::unique_ptr<Opened> open_trainee(channel::Pieces pieces, Answer& answer);

/// Shared by both
torch::jit::Module load_module(const channel::Pieces::Piece& bytes);
at::Tensor tensor_of(channel::Pieces& pieces, std::string& name);  ///< name, shape, kind, numbers; used in place
bool is_tensor(const c10::TypePtr& type);

}  // namespace eigenveil
