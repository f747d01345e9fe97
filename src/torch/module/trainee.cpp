// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>
#include <torch/script.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "fixed.hpp"
#include "graph_check.hpp"
#include "modules.hpp"
#include "simplify.hpp"

namespace eigenveil {
namespace {

using torch::jit::Module;

struct Named {
  std::string name;
  at::Tensor value;
};

// Parameters that want a gradient; one that has several names counts once.
std::vector<Named> trainable(const Module& module) {
  std::vector<Named> found;
  std::unordered_set<const void*> seen;
  for (const auto& parameter : module.named_parameters())
    if (parameter.value.requires_grad() && seen.insert(parameter.value.unsafeGetTensorImpl()).second)
      found.push_back({parameter.name, parameter.value});
  return found;
}

// (CE(S, 1..m) + CE(S^T, 1..m)) / 2, S = f g^T / tau of unit rows
at::Tensor infonce(const at::Tensor& images, const at::Tensor& texts, double temperature) {
  const auto unit = [](const at::Tensor& rows) { return rows / rows.norm(2, {1}, true).clamp_min(1e-12); };
  const at::Tensor S = at::matmul(unit(images), unit(texts).t()) / temperature;
  const at::Tensor own = at::arange(S.size(0), at::kLong);
  return (at::cross_entropy_loss(S, own) + at::cross_entropy_loss(S.t(), own)) / 2;
}

std::vector<at::Tensor> values_of(const std::vector<Named>& parameters) {
  std::vector<at::Tensor> values;
  for (const Named& parameter : parameters) values.push_back(parameter.value);
  return values;
}

class Trainee final : public Opened {
 public:
  Trainee(Module module, std::optional<Module> loss, double temperature, bool has_loss)
      : module_(std::move(module)),
        loss_(std::move(loss)),
        temperature_(temperature),
        has_loss_(has_loss),
        parameters_(trainable(module_)),
        kept_(module_, has_loss ? "loss" : "forward", values_of(parameters_)) {
    if (loss_) kept_loss_.emplace(*loss_, "forward");
  }

  const std::vector<Named>& parameters() const { return parameters_; }

  // Of the loss of the whole batch, at the given parameters.
  void work(const channel::Request& request, channel::Pieces pieces, Part /*part*/, Answer& answer) override {
    omp_set_num_threads(static_cast<int>(request.threads));
    at::manual_seed(request.number);
    const at::AutoGradMode with_gradients(true);  // for each batch: a module may change it
    const auto given = pieces.next();
    set(reinterpret_cast<double*>(given.data));
    for (Named& parameter : parameters_) parameter.value.mutable_grad() = at::Tensor();
    std::vector<Named> batch(pieces.number<std::uint64_t>());
    for (Named& part : batch) part.value = tensor_of(pieces, part.name);
    const at::Tensor loss = loss_of(batch);
    kept_.check();
    if (kept_loss_) kept_loss_->check();
    if (loss.numel() != 1 || !loss.is_floating_point())
      throw std::runtime_error(fmt::format("the loss has {} numbers of type {}; expected one float", loss.numel(),
                                           c10::toString(loss.scalar_type())));
    if (!std::isfinite(loss.item<double>())) throw NotFinite();
    if (!loss.requires_grad()) throw std::runtime_error("the loss depends on none of the parameters");
    loss.reshape({}).backward();
    for (const Named& parameter : parameters_) {
      const at::Tensor& gradient = parameter.value.grad();
      const at::Tensor flat =
          (gradient.defined() ? gradient : at::zeros_like(parameter.value)).to(at::kDouble).contiguous();
      answer.add(flat.data_ptr<double>(), static_cast<std::size_t>(flat.numel()) * sizeof(double));
    }
  }

 private:
  void set(double* from) {
    const at::NoGradGuard guard;
    for (Named& parameter : parameters_) {
      parameter.value.copy_(at::from_blob(from, parameter.value.sizes(), at::kDouble));
      from += parameter.value.numel();
    }
  }

  at::Tensor loss_of(const std::vector<Named>& batch) {
    if (has_loss_) {
      c10::Dict<std::string, at::Tensor> parts;
      for (const Named& part : batch) parts.insert(part.name, part.value);
      return module_.get_method("loss")({parts}).toTensor();
    }
    std::vector<c10::IValue> inputs;
    for (const char* name : {"images", "tokens"})
      for (const Named& part : batch)
        if (part.name == name) inputs.emplace_back(part.value);
    const auto both = module_.forward(inputs).toTuple();
    const at::Tensor images = both->elements()[0].toTensor(), texts = both->elements()[1].toTensor();
    const auto rows = batch.front().value.size(0);
    for (const at::Tensor& embedding : {images, texts})
      if (embedding.dim() != 2 || embedding.size(0) != rows || embedding.size(1) != images.size(1))
        throw std::runtime_error(
            fmt::format("forward gives embeddings of shapes {} and {} for {} pairs; expected two of pairs x dimensions",
                        fmt::join(images.sizes(), " x "), fmt::join(texts.sizes(), " x "), rows));
    return loss_ ? loss_->forward({images, texts}).toTensor() : infonce(images, texts, temperature_);
  }

  Module module_;
  std::optional<Module> loss_;
  double temperature_;
  bool has_loss_;
  std::vector<Named> parameters_;
  FixedTensors kept_;
  std::optional<FixedTensors> kept_loss_;
};

void check_signature(const Module& module, bool has_loss) {
  const char* expected = has_loss ? "loss(batch: Dict[str, Tensor]) -> Tensor"
                                  : "forward(images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor], or "
                                    "loss(batch: Dict[str, Tensor]) -> Tensor";
  const auto method = module.find_method(has_loss ? "loss" : "forward");
  if (!method) throw Refusal(fmt::format("has no method {}", expected));
  const auto& schema = method->function().getSchema();
  const auto& takes = schema.arguments();
  const auto& gives = schema.returns();
  bool right = gives.size() == 1;
  if (has_loss) {
    const auto dict = takes.size() == 2 ? takes[1].type()->cast<c10::DictType>() : nullptr;
    right = right && dict != nullptr && dict->getKeyType()->kind() == c10::TypeKind::StringType &&
            is_tensor(dict->getValueType()) && is_tensor(gives[0].type());
  } else {
    const auto pair = right ? gives[0].type()->cast<c10::TupleType>() : nullptr;
    right = takes.size() == 3 && is_tensor(takes[1].type()) && is_tensor(takes[2].type()) && pair != nullptr &&
            pair->elements().size() == 2 && is_tensor(pair->elements()[0]) && is_tensor(pair->elements()[1]);
  }
  if (!right) throw Refusal(fmt::format("expected {}, but it has {}", expected, c10::toString(schema)));
}

// What is looked at is what will be executed.
void check_graph(const torch::jit::Method& method) {
  simplify(method);
  if (const auto impure = impure_operator(method); !impure.empty()) throw Refusal(impure);
  if (const auto write = lasting_write(method); !write.empty()) throw Refusal(write);
}

std::optional<Module> open_loss(const channel::Pieces::Piece& bytes, bool has_loss) {
  if (bytes.bytes == 0) return {};
  if (has_loss) throw Refusal("has a loss of its own: leave `loss_module` out");
  Module loss = load_module(bytes);
  const auto method = loss.find_method("forward");
  if (!method || method->function().getSchema().arguments().size() != 3)
    throw Refusal("`loss_module`: expected forward(image_embeddings: Tensor, text_embeddings: Tensor) -> Tensor");
  check_graph(*method);
  return loss;
}

// Where the file keeps each parameter. In the marked copy of the file every record of numbers begins with its own
// place in the archive, so a parameter that comes out of it says which record it is in.
nlohmann::json places_of(const std::vector<Named>& parameters, const std::vector<Named>& marked) {
  nlohmann::json places = nlohmann::json::array();
  if (parameters.size() != marked.size()) throw Refusal("makes its parameters while it loads; save them as they are");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, value] = parameters[i];
    if (value.scalar_type() != at::kFloat && value.scalar_type() != at::kDouble)
      throw Refusal(fmt::format("parameter {} is of type {}; expected float or double", name,
                                c10::toString(value.scalar_type())));
    const at::Tensor& mark = marked[i].value;
    if (!value.is_contiguous() || !mark.is_contiguous() || mark.storage().nbytes() < sizeof(std::uint32_t) ||
        mark.sizes() != value.sizes() || mark.scalar_type() != value.scalar_type())
      throw Refusal(fmt::format("parameter {} is a view of other numbers; save a copy of it (clone)", name));
    std::uint32_t record = 0;
    std::memcpy(&record, mark.storage().data(), sizeof record);
    places.push_back({{"name", name},
                      {"record", record},
                      {"offset", mark.storage_offset() * mark.element_size()},
                      {"count", value.numel()},
                      {"double", value.scalar_type() == at::kDouble}});
  }
  return places;
}

}  // namespace

std::unique_ptr<Opened> open_trainee(channel::Pieces pieces, Answer& answer) {
  const auto bytes = pieces.next(), marked_bytes = pieces.next(), loss_bytes = pieces.next();
  const double temperature = pieces.number<double>();
  Module module = load_module(bytes);
  const bool has_loss = module.find_method("loss").has_value();
  check_signature(module, has_loss);
  auto loss = open_loss(loss_bytes, has_loss);
  module.train();
  check_graph(module.get_method(has_loss ? "loss" : "forward"));
  auto trainee = std::make_unique<Trainee>(std::move(module), std::move(loss), temperature, has_loss);
  const auto& parameters = trainee->parameters();
  if (parameters.empty()) throw Refusal("has no parameters that want a gradient (requires_grad)");
  const std::string facts =
      nlohmann::json(
          {{"own_loss", has_loss}, {"parameters", places_of(parameters, trainable(load_module(marked_bytes)))}})
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t size = facts.size();
  answer.add(&size, sizeof size);
  answer.add(facts.data(), facts.size());
  for (const Named& parameter : parameters) {
    const at::Tensor flat = parameter.value.detach().to(at::kDouble).contiguous();
    answer.add(flat.data_ptr<double>(), static_cast<std::size_t>(flat.numel()) * sizeof(double));
  }
  return trainee;
}

}  // namespace eigenveil
