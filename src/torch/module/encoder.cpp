// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/script.h>

#include "fixed.hpp"
#include "graph_check.hpp"
#include "modules.hpp"
#include "simplify.hpp"

namespace eigenveil {
namespace {

using torch::jit::Module;

class Encoder final : public Opened {
 public:
  Encoder(Module module, std::string method)
      : module_(std::move(module)), method_(std::move(method)), kept_(module_, {method_}) {}

  // Row by row, on one thread, with the random stream begun anew: a function of the row alone.
  void work(const channel::Request& request, channel::Pieces pieces, Part part, Answer& answer) override {
    std::string name;
    const at::Tensor rows = tensor_of(pieces, name);
    const auto features = static_cast<std::size_t>(request.number);
    for (std::int64_t i = part.fork; i < rows.size(0); i += part.forks) {
      const c10::InferenceMode no_gradients;  // for each row: a module may ask for it and change it
      at::manual_seed(1);
      const at::Tensor row = rows.narrow(0, i, 1).clone();
      const at::Tensor out = module_.get_method(method_)({row}).toTensor().to(at::kDouble).contiguous();
      kept_.check();
      if (out.dim() != 2 || out.size(0) != 1 || out.size(1) == 0)
        throw std::runtime_error(fmt::format("{} gives a tensor of shape {} for one row; expected 1 x features",
                                             method_, fmt::join(out.sizes(), " x ")));
      if (!out.isfinite().all().item<bool>()) throw NotFinite();
      const std::size_t bytes = out.numel() * sizeof(double);
      const std::size_t at = i * bytes;
      if (features > 0 && static_cast<std::size_t>(out.numel()) != features)
        throw std::runtime_error(fmt::format("{} gives rows of one size different numbers of features", method_));
      if (at + bytes > answer.capacity) throw TooLarge();
      std::memcpy(answer.to + at, out.data_ptr<double>(), bytes);
      answer.bytes = std::max(answer.bytes, at + bytes);
    }
  }

 private:
  Module module_;
  std::string method_;
  FixedTensors kept_;
};

}  // namespace

std::unique_ptr<Opened> open_encoder(channel::Pieces pieces, Answer& answer) {
  Module module = load_module(pieces.next());
  const std::string wanted = pieces.next().text();
  const std::string name = module.find_method(wanted) ? wanted : "forward";
  const auto found = module.find_method(name);
  const auto* schema = found ? &found->function().getSchema() : nullptr;
  if (schema == nullptr || schema->arguments().size() != 2 || !is_tensor(schema->arguments()[1].type()) ||
      schema->returns().size() != 1 || !is_tensor(schema->returns()[0].type()))
    throw Refusal(fmt::format("an encoder needs {}(rows: Tensor) -> Tensor, or forward of that kind{}", wanted,
                              schema == nullptr ? "" : fmt::format("; it has {}", c10::toString(*schema))));
  if (const auto impure = impure_operator(*found); !impure.empty()) throw Refusal(impure);
  inline_calls(*found->graph());  // freezing goes one call deep when Torch's optimiser is off
  module.eval();
  // As it is called in evaluation: batch normalisation and dropout are functions of a row there.
  Module frozen = torch::jit::freeze(module, std::vector<std::string>{name}, false);
  if (const auto write = lasting_write(frozen.get_method(name)); !write.empty()) throw Refusal(write);
  if (frozen.named_attributes(true).size() > 0)
    throw Refusal(fmt::format("calling {} changes the module itself", name));
  answer.add(name.data(), name.size());
  return std::make_unique<Encoder>(std::move(frozen), name);
}

}  // namespace eigenveil
