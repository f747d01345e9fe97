// The only file that sees libtorch. Everything a module may throw ends here as an Error.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/script.h>

#include <cmath>
#include <sstream>
#include <unordered_set>

#include "eigenveil/torch/module.hpp"

namespace eigenveil {
namespace {

using Module = ::torch::jit::Module;

// What PyTorch says, without its C++ stack.
std::string first_lines(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  std::string text = known != nullptr ? known->what_without_backtrace() : error.what();
  constexpr std::size_t kLongest = 600;
  if (text.size() > kLongest) text = "... " + text.substr(text.size() - kLongest);  // the reason comes last
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// What `body` returns, or what it threw, after "where".
template <class Body>
auto guarded(const std::string& where, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return bad_input(fmt::format("{}: {}", where, first_lines(error)));
  }
}

Result<Module> load(const std::string& path) {
  return guarded(path, [&]() -> Result<Module> {
    std::ifstream file(path, std::ios::binary);
    if (!file)
      return bad_input(fmt::format("{}: cannot be read; expected a TorchScript module (torch.jit.save)", path));
    try {
      return ::torch::jit::load(file);
    } catch (const std::exception& error) {
      return bad_input(fmt::format("{}: is no TorchScript module; write it with torch.jit.save ({})", path,
                                   first_lines(error).substr(0, 120)));
    }
  });
}

at::Tensor to_torch(const Tensor& tensor) {
  const auto kind = tensor.whole ? at::kLong : at::kFloat;
  const void* data = tensor.whole ? static_cast<const void*>(tensor.integers.data()) : tensor.floats.data();
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): copied at once
  return at::from_blob(const_cast<void*>(data), tensor.shape, at::TensorOptions().dtype(kind)).clone();
}

bool is_tensor(const c10::TypePtr& type) { return type->isSubtypeOf(*c10::TensorType::get()); }

// ---- encoders

class FrozenEncoder final : public TorchEncoder {
 public:
  FrozenEncoder(Module module, std::string path, std::string method)
      : module_(std::move(module)), path_(std::move(path)), method_(std::move(method)) {}

  Result<std::vector<double>> encode(const Tensor& one) const override {
    return guarded(path_, [&]() -> Result<std::vector<double>> {
      const c10::InferenceMode no_gradients;
      const at::Tensor out = module_.get_method(method_)({to_torch(one)}).toTensor().to(at::kDouble).contiguous();
      if (out.dim() != 2 || out.size(0) != 1 || out.size(1) == 0)
        return bad_input(fmt::format("{}: {} gives a tensor of shape {} for one row; expected 1 x features", path_,
                                     method_, fmt::join(out.sizes(), " x ")));
      std::vector<double> features(out.data_ptr<double>(), out.data_ptr<double>() + out.numel());
      for (const double x : features)
        if (!std::isfinite(x)) return bad_input(fmt::format("{}: gives features that are not finite", path_));
      return features;
    });
  }

 private:
  Module module_;
  std::string path_;
  std::string method_;
};

Result<std::unique_ptr<TorchEncoder>> make_encoder(const std::string& path, const std::string& wanted) {
  auto loaded = load(path);
  if (!loaded) return loaded.error();
  return guarded(path, [&]() -> Result<std::unique_ptr<TorchEncoder>> {
    const int threads = omp_get_max_threads();
    at::set_num_threads(1);        // rows are encoded side by side instead
    omp_set_num_threads(threads);  // which is meant for Torch alone
    Module module = *std::move(loaded);
    const std::string method = module.find_method(wanted) ? wanted : "forward";
    const auto found = module.find_method(method);
    const auto* schema = found ? &found->function().getSchema() : nullptr;
    if (schema == nullptr || schema->arguments().size() != 2 || !is_tensor(schema->arguments()[1].type()) ||
        schema->returns().size() != 1 || !is_tensor(schema->returns()[0].type()))
      return bad_input(fmt::format("{}: an encoder needs {}(rows: Tensor) -> Tensor, or forward of that kind{}", path,
                                   wanted,
                                   schema == nullptr ? "" : fmt::format("; it has {}", c10::toString(*schema))));
    module.eval();
    // What a call changes cannot be frozen and stays behind as an attribute.
    Module frozen = ::torch::jit::freeze(module, std::vector<std::string>{method}, false);
    if (frozen.named_attributes(true).size() > 0)
      return bad_input(
          fmt::format("{}: calling {} changes the module itself, so that a row's features could depend on earlier rows",
                      path, method));
    return std::unique_ptr<TorchEncoder>(std::make_unique<FrozenEncoder>(std::move(frozen), path, method));
  });
}

// ---- training

// Parameters that want a gradient; one that has several names counts once.
std::vector<at::Tensor> trainable(const Module& module, const std::vector<std::string>& names) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : module.named_parameters())
    if (std::find(names.begin(), names.end(), parameter.name) != names.end()) tensors.push_back(parameter.value);
  return tensors;
}

std::vector<std::string> trainable_names(const Module& module) {
  std::vector<std::string> names;
  std::unordered_set<const void*> seen;
  for (const auto& parameter : module.named_parameters())
    if (parameter.value.requires_grad() && seen.insert(parameter.value.unsafeGetTensorImpl()).second)
      names.push_back(parameter.name);
  return names;
}

// (CE(S, 1..m) + CE(S^T, 1..m)) / 2, S = f g^T / tau of unit rows
at::Tensor infonce(const at::Tensor& images, const at::Tensor& texts, double temperature) {
  const auto unit = [](const at::Tensor& rows) { return rows / rows.norm(2, {1}, true).clamp_min(1e-12); };
  const at::Tensor S = at::matmul(unit(images), unit(texts).t()) / temperature;
  const at::Tensor own = at::arange(S.size(0), at::kLong);
  return (at::cross_entropy_loss(S, own) + at::cross_entropy_loss(S.t(), own)) / 2;
}

class Trainee final : public TorchTrainee {
 public:
  Trainee(Module module, std::optional<Module> loss, const TorchTraineeOptions& options, bool has_loss)
      : module_(std::move(module)),
        loss_(std::move(loss)),
        options_(options),
        has_loss_(has_loss),
        names_(trainable_names(module_)) {}

  std::vector<double> parameters() const override {
    const at::NoGradGuard guard;
    std::vector<double> all;
    for (const at::Tensor& tensor : trainable(module_, names_)) {
      const at::Tensor flat = tensor.to(at::kDouble).contiguous();
      all.insert(all.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
    return all;
  }

  std::vector<std::string> wanted() const override {
    return has_loss_ ? std::vector<std::string>{} : std::vector<std::string>{"images", "tokens"};
  }

  Result<std::vector<double>> gradient(const std::vector<Tensor>& batch, std::span<const double> parameters,
                                       std::uint64_t seed) override {
    return guarded(options_.module, [&]() -> Result<std::vector<double>> {
      at::manual_seed(seed);
      Module copy = fresh(parameters, true);
      const at::Tensor loss = loss_of(copy, batch);
      if (loss.numel() != 1 || !loss.is_floating_point())
        return bad_input(fmt::format("{}: the loss has {} numbers of type {}; expected one float", options_.module,
                                     loss.numel(), c10::toString(loss.scalar_type())));
      if (!std::isfinite(loss.item<double>()))
        return bad_input(fmt::format("{}: the loss is not finite", options_.module));
      if (!loss.requires_grad())
        return bad_input(fmt::format("{}: the loss depends on none of the parameters", options_.module));
      loss.reshape({}).backward();
      note_buffers(copy);
      std::vector<double> all;
      all.reserve(parameters.size());
      for (const at::Tensor& tensor : trainable(copy, names_)) {
        if (!tensor.grad().defined()) {
          all.insert(all.end(), static_cast<std::size_t>(tensor.numel()), 0.0);
          continue;
        }
        const at::Tensor flat = tensor.grad().to(at::kDouble).contiguous();
        all.insert(all.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      }
      return all;
    });
  }

  bool changed_buffers() const override { return changed_buffers_; }

  Result<std::string> file(std::span<const double> parameters, const std::string& manifest) const override {
    return guarded(options_.module, [&]() -> Result<std::string> {
      std::ostringstream bytes;
      fresh(parameters, false).save(bytes, {{"eigenveil.json", manifest}});
      return std::move(bytes).str();
    });
  }

 private:
  // The file's module, untouched by any batch, with other parameters.
  Module fresh(std::span<const double> parameters, bool train) const {
    const at::NoGradGuard guard;
    Module copy = module_.deepcopy();
    const double* from = parameters.data();
    for (at::Tensor& tensor : trainable(copy, names_)) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only read
      tensor.copy_(at::from_blob(const_cast<double*>(from), tensor.sizes(), at::kDouble));
      tensor.requires_grad_(true);
      from += tensor.numel();
    }
    if (train) copy.train();
    return copy;
  }

  at::Tensor loss_of(Module& module, const std::vector<Tensor>& batch) {
    if (has_loss_) {
      c10::Dict<std::string, at::Tensor> parts;
      for (const Tensor& part : batch) parts.insert(part.name, to_torch(part));
      return module.get_method("loss")({parts}).toTensor();
    }
    std::vector<c10::IValue> inputs;
    for (const char* name : {"images", "tokens"})
      for (const Tensor& part : batch)
        if (part.name == name) inputs.emplace_back(to_torch(part));
    const auto both = module.forward(inputs).toTuple();
    const at::Tensor images = both->elements()[0].toTensor(), texts = both->elements()[1].toTensor();
    const auto rows = batch.front().rows();
    for (const at::Tensor& embedding : {images, texts})
      if (embedding.dim() != 2 || embedding.size(0) != rows || embedding.size(1) != images.size(1))
        throw std::runtime_error(
            fmt::format("forward gives embeddings of shapes {} and {} for {} pairs; expected two of pairs x dimensions",
                        fmt::join(images.sizes(), " x "), fmt::join(texts.sizes(), " x "), rows));
    if (!loss_) return infonce(images, texts, options_.temperature);
    return loss_->deepcopy().forward({images, texts}).toTensor();
  }

  void note_buffers(const Module& copy) {
    const at::NoGradGuard guard;
    auto before = module_.buffers(true).begin();
    changed_buffers_ = false;
    for (const at::Tensor& after : copy.buffers(true)) changed_buffers_ |= !at::equal(*before, after), ++before;
  }

  Module module_;
  std::optional<Module> loss_;
  TorchTraineeOptions options_;
  bool has_loss_;
  std::vector<std::string> names_;
  bool changed_buffers_ = false;
};

Status check_signature(const Module& module, const std::string& path, bool has_loss) {
  const char* expected = has_loss ? "loss(batch: Dict[str, Tensor]) -> Tensor"
                                  : "forward(images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor], or "
                                    "loss(batch: Dict[str, Tensor]) -> Tensor";
  const auto method = module.find_method(has_loss ? "loss" : "forward");
  if (!method) return bad_input(fmt::format("{}: has no method {}", path, expected));
  const auto& schema = method->function().getSchema();
  const auto& takes = schema.arguments();
  const auto& gives = schema.returns();
  bool right = gives.size() == 1;
  if (has_loss) {
    const auto dict = takes.size() == 2 ? takes[1].type()->cast<c10::DictType>() : nullptr;
    right &= dict != nullptr && dict->getKeyType()->kind() == c10::TypeKind::StringType &&
             is_tensor(dict->getValueType()) && is_tensor(gives[0].type());
  } else {
    const auto pair = right ? gives[0].type()->cast<c10::TupleType>() : nullptr;
    right &= takes.size() == 3 && is_tensor(takes[1].type()) && is_tensor(takes[2].type()) && pair != nullptr &&
             pair->elements().size() == 2 && is_tensor(pair->elements()[0]) && is_tensor(pair->elements()[1]);
  }
  if (right) return {};
  return bad_input(fmt::format("{}: expected {}, but it has {}", path, expected, c10::toString(schema)));
}

Result<std::unique_ptr<TorchTrainee>> make_trainee(const TorchTraineeOptions& options) {
  auto loaded = load(options.module);
  if (!loaded) return loaded.error();
  const bool has_loss = loaded->find_method("loss").has_value();
  EIGENVEIL_TRY(check_signature(*loaded, options.module, has_loss));
  std::optional<Module> loss;
  if (!options.loss_module.empty()) {
    if (has_loss) return usage_error(fmt::format("{} has a loss of its own: leave --loss-module out", options.module));
    auto other = load(options.loss_module);
    if (!other) return other.error();
    const auto method = other->find_method("forward");
    if (!method || method->function().getSchema().arguments().size() != 3)
      return bad_input(fmt::format("{}: expected forward(image_embeddings: Tensor, text_embeddings: Tensor) -> Tensor",
                                   options.loss_module));
    loss = *std::move(other);
  }
  return guarded(options.module, [&]() -> Result<std::unique_ptr<TorchTrainee>> {
    at::set_num_threads(options.threads);
    for (const auto& parameter : loaded->named_parameters())
      if (parameter.value.requires_grad() && parameter.value.scalar_type() != at::kFloat &&
          parameter.value.scalar_type() != at::kDouble)
        return bad_input(fmt::format("{}: parameter {} is of type {}; expected float or double", options.module,
                                     parameter.name, c10::toString(parameter.value.scalar_type())));
    auto trainee = std::make_unique<Trainee>(*std::move(loaded), std::move(loss), options, has_loss);
    if (trainee->parameters().empty())
      return bad_input(fmt::format("{}: has no parameters that want a gradient (requires_grad)", options.module));
    return std::unique_ptr<TorchTrainee>(std::move(trainee));
  });
}

class Plugin final : public TorchPlugin {
 public:
  Result<std::unique_ptr<TorchEncoder>> encoder(const std::string& path, const std::string& method) const override {
    return make_encoder(path, method);
  }
  Result<std::unique_ptr<TorchTrainee>> trainee(const TorchTraineeOptions& options) const override {
    return make_trainee(options);
  }
};

}  // namespace
}  // namespace eigenveil

// Found by name; null for a program of another version.
extern "C" __attribute__((visibility("default"))) const eigenveil::TorchPlugin* eigenveil_torch_plugin(
    const char* version) {
  static const eigenveil::Plugin plugin;
  return std::string_view(version) == EIGENVEIL_VERSION ? &plugin : nullptr;
}
