// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
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

// Parameters that want a gradient, or those whose names the pattern is found in; one that has several names counts
// once.
std::vector<Named> trainable(const Module& module, const std::string& pattern) {
  std::vector<Named> found;
  std::unordered_set<const void*> seen;
  const std::regex wanted(pattern);
  for (const auto& parameter : module.named_parameters()) {
    if (!pattern.empty()) parameter.value.set_requires_grad(std::regex_search(parameter.name, wanted));
    if (parameter.value.requires_grad() && seen.insert(parameter.value.unsafeGetTensorImpl()).second)
      found.push_back({parameter.name, parameter.value});
  }
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

// What is trained for: a loss of each pair by itself, a loss of a whole batch, or both.
struct Terms {
  std::string each;   // sample_loss; empty: none
  std::string batch;  // batch_loss, loss or forward; empty: none
  bool forward() const { return batch == "forward"; }
  std::vector<std::string> methods() const {
    std::vector<std::string> all;
    for (const std::string& method : {each, batch})
      if (!method.empty()) all.push_back(method);
    return all;
  }
};

// Another seed for each part of a batch, the same each time.
std::uint64_t seed_of(std::uint64_t seed, std::int64_t part) {
  return seed + 0x9E3779B97F4A7C15U * static_cast<std::uint64_t>(part);
}

class Trainee final : public Opened {
 public:
  Trainee(Module module, std::optional<Module> loss, const nlohmann::json& settings, Terms terms)
      : module_(std::move(module)),
        loss_(std::move(loss)),
        temperature_(settings.at("temperature").get<double>()),
        microbatch_(settings.at("microbatch").get<std::int64_t>()),
        terms_(std::move(terms)),
        parameters_(trainable(module_, settings.at("train").get<std::string>())),
        kept_(module_, terms_.methods(), values_of(parameters_)) {
    if (loss_) kept_loss_.emplace(*loss_, std::vector<std::string>{"forward"});
  }

  const std::vector<Named>& parameters() const { return parameters_; }

  void work(const channel::Request& request, channel::Pieces pieces, Part part, Answer& answer) override {
    const auto* given = reinterpret_cast<const double*>(pieces.next().data);
    const auto seeds = pieces.next();
    std::vector<Named> rows(pieces.number<std::uint64_t>());
    for (Named& one : rows) one.value = tensor_of(pieces, one.name);
    if (request.ask == channel::Ask::kGradients)
      each(request, given, reinterpret_cast<const std::uint64_t*>(seeds.data), rows, part, answer);
    else if (request.ask == channel::Ask::kLoss)
      losses(request, given, rows, answer);
    else
      whole(request, given, rows, answer);
  }

 private:
  // Nothing is as the last call left it. The gradient mode, too: a module may change it.
  void begin(const double* given, std::uint64_t seed) {
    at::manual_seed(seed);
    const at::NoGradGuard guard;
    for (Named& parameter : parameters_) {
      parameter.value.copy_(at::from_blob(const_cast<double*>(given), parameter.value.sizes(), at::kDouble));
      given += parameter.value.numel();
      parameter.value.mutable_grad() = at::Tensor();
    }
  }

  void check_kept() const {
    kept_.check();
    if (kept_loss_) kept_loss_->check();
  }

  static void check_scalar(const at::Tensor& loss) {
    if (loss.numel() != 1 || !loss.is_floating_point())
      throw std::runtime_error(fmt::format("the loss has {} numbers of type {}; expected one float", loss.numel(),
                                           c10::toString(loss.scalar_type())));
  }

  void write_gradient(char* to) const {
    for (const Named& parameter : parameters_) {
      const at::Tensor& gradient = parameter.value.grad();
      const at::Tensor flat =
          (gradient.defined() ? gradient : at::zeros_like(parameter.value)).to(at::kDouble).contiguous();
      const std::size_t bytes = flat.numel() * sizeof(double);
      std::memcpy(to, flat.data_ptr<double>(), bytes);
      to += bytes;
    }
  }

  std::size_t gradient_bytes() const {
    std::size_t count = 0;
    for (const Named& parameter : parameters_) count += parameter.value.numel();
    return count * sizeof(double);
  }

  // The gradient of the loss of the whole batch.
  void whole(const channel::Request& request, const double* given, const std::vector<Named>& batch, Answer& answer) {
    omp_set_num_threads(static_cast<int>(request.threads));
    const at::AutoGradMode with_gradients(true);
    begin(given, request.number);
    const bool parts = terms_.forward() && microbatch_ > 0 && batch.front().value.size(0) > microbatch_;
    if (parts)
      backward_in_parts(batch, request.number);
    else
      backward(batch_loss(batch));
    if (gradient_bytes() > answer.capacity) throw TooLarge();
    write_gradient(answer.to);
    answer.bytes = gradient_bytes();
  }

  // Of each pair's own loss, from a batch of this pair alone: copies, since a view has its neighbours behind it. One
  // thread per fork, which takes every forks-th pair.
  void each(const channel::Request& request, const double* given, const std::uint64_t* seeds,
            const std::vector<Named>& rows, Part part, Answer& answer) {
    omp_set_num_threads(1);
    const std::size_t bytes = gradient_bytes();
    for (std::int64_t i = part.fork; i < rows.front().value.size(0); i += part.forks) {
      const std::size_t at = i * bytes;
      if (at + bytes > answer.capacity) throw TooLarge();
      const at::AutoGradMode with_gradients(true);
      begin(given, seeds[i]);
      const at::Tensor loss = call(terms_.each, one_of(rows, i));
      check_kept();
      check_scalar(loss);
      if (request.made_up != 0 && !loss.requires_grad())
        throw std::runtime_error("the loss depends on none of the parameters");
      if (loss.requires_grad()) loss.reshape({}).backward();
      write_gradient(answer.to + at);
      // The library counts what is not finite as zero.
      if (!std::isfinite(loss.item<double>())) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        std::memcpy(answer.to + at, &nan, sizeof nan);
      }
      answer.bytes = std::max(answer.bytes, at + bytes);
    }
  }

  // On public pairs, as in evaluation: the loss of the batch, and the mean of those of its pairs.
  void losses(const channel::Request& request, const double* given, const std::vector<Named>& rows, Answer& answer) {
    omp_set_num_threads(static_cast<int>(request.threads));
    const at::NoGradGuard no_gradients;
    module_.eval();
    if (loss_) loss_->eval();
    begin(given, 1);
    double found[2] = {0, 0};
    if (!terms_.batch.empty()) found[0] = number(batch_loss(rows));
    if (!terms_.each.empty()) {
      const std::int64_t count = rows.front().value.size(0);
      for (std::int64_t i = 0; i < count; ++i)
        found[1] += number(call(terms_.each, one_of(rows, i))) / static_cast<double>(count);
    }
    answer.add(found, sizeof found);
  }

  static double number(const at::Tensor& loss) {
    check_scalar(loss);
    if (!std::isfinite(loss.item<double>())) throw NotFinite();
    return loss.item<double>();
  }

  void backward(const at::Tensor& loss) const {
    check_kept();
    number(loss);
    if (!loss.requires_grad()) throw std::runtime_error("the loss depends on none of the parameters");
    loss.reshape({}).backward();
  }

  static std::vector<Named> one_of(const std::vector<Named>& rows, std::int64_t i) {
    std::vector<Named> one;
    for (const Named& part : rows) one.push_back({part.name, part.value.narrow(0, i, 1).clone()});
    return one;
  }

  at::Tensor call(const std::string& method, const std::vector<Named>& batch) {
    c10::Dict<std::string, at::Tensor> parts;
    for (const Named& part : batch) parts.insert(part.name, part.value);
    return module_.get_method(method)({parts}).toTensor();
  }

  struct Embeddings {
    at::Tensor images, texts;
  };

  // Of the pairs first, ..., first + count - 1.
  Embeddings embed(const std::vector<Named>& batch, std::int64_t first, std::int64_t count) {
    std::vector<c10::IValue> inputs;
    for (const char* name : {"images", "tokens"})
      for (const Named& part : batch)
        if (part.name == name) inputs.emplace_back(part.value.narrow(0, first, count));
    const auto both = module_.forward(inputs).toTuple();
    Embeddings made{both->elements()[0].toTensor(), both->elements()[1].toTensor()};
    for (const at::Tensor& embedding : {made.images, made.texts})
      if (embedding.dim() != 2 || embedding.size(0) != count || embedding.size(1) != made.images.size(1))
        throw std::runtime_error(
            fmt::format("forward gives embeddings of shapes {} and {} for {} pairs; expected two of pairs x dimensions",
                        fmt::join(made.images.sizes(), " x "), fmt::join(made.texts.sizes(), " x "), count));
    return made;
  }

  at::Tensor compare(const Embeddings& made) {
    return loss_ ? loss_->forward({made.images, made.texts}).toTensor()
                 : infonce(made.images, made.texts, temperature_);
  }

  at::Tensor batch_loss(const std::vector<Named>& batch) {
    if (!terms_.forward()) return call(terms_.batch, batch);
    return compare(embed(batch, 0, batch.front().value.size(0)));
  }

  // The same gradient with the graph of `microbatch_` pairs at a time in memory: dL/d(embeddings) first, from
  // embeddings without graphs, then each part's embeddings again, with theirs (Gao et al. 2021).
  void backward_in_parts(const std::vector<Named>& batch, std::uint64_t seed) {
    const std::int64_t rows = batch.front().value.size(0);
    const auto part_at = [&](std::int64_t first) {
      at::manual_seed(seed_of(seed, 1 + first));
      return embed(batch, first, std::min(microbatch_, rows - first));
    };
    std::vector<at::Tensor> images, texts;
    for (std::int64_t first = 0; first < rows; first += microbatch_) {
      const at::NoGradGuard no_graph;
      const Embeddings part = part_at(first);
      images.push_back(part.images.detach());
      texts.push_back(part.texts.detach());
    }
    const Embeddings all{at::cat(images).requires_grad_(), at::cat(texts).requires_grad_()};
    at::manual_seed(seed);
    backward(compare(all));
    for (std::int64_t first = 0; first < rows; first += microbatch_) {
      const at::AutoGradMode with_gradients(true);
      const Embeddings part = part_at(first);
      std::vector<at::Tensor> made, along;
      for (const auto& [embedding, whole] : {std::pair(part.images, all.images), std::pair(part.texts, all.texts)}) {
        if (!embedding.requires_grad() || !whole.grad().defined()) continue;
        made.push_back(embedding);
        along.push_back(whole.grad().narrow(0, first, embedding.size(0)));
      }
      if (!made.empty()) torch::autograd::backward(made, along);
      check_kept();
    }
  }

  Module module_;
  std::optional<Module> loss_;
  double temperature_;
  std::int64_t microbatch_;
  Terms terms_;
  std::vector<Named> parameters_;
  FixedTensors kept_;
  std::optional<FixedTensors> kept_loss_;
};

void check_signature(const Module& module, const std::string& name) {
  const bool forward = name == "forward";
  const std::string expected = forward ? "forward(images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor], or "
                                         "batch_loss(batch: Dict[str, Tensor]) -> Tensor"
                                       : name + "(batch: Dict[str, Tensor]) -> Tensor";
  const auto method = module.find_method(name);
  if (!method) throw Refusal(fmt::format("has no method {}", expected));
  const auto& schema = method->function().getSchema();
  const auto& takes = schema.arguments();
  const auto& gives = schema.returns();
  bool right = gives.size() == 1;
  if (!forward) {
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

// Which methods, as the options ask.
Terms terms_of(const Module& module, const nlohmann::json& settings) {
  Terms terms;
  const auto has = [&](const char* name) { return module.find_method(name).has_value(); };
  if (settings.at("each").get<bool>()) terms.each = "sample_loss";
  if (settings.at("batch").get<bool>())
    terms.batch = has("batch_loss") ? "batch_loss" : has("loss") ? "loss" : "forward";
  if (!terms.batch.empty() && terms.each.empty() && terms.forward() && has("sample_loss"))
    throw Refusal(
        "has a sample_loss: give its `sample_clip`, and leave `clip` out unless forward is to be trained too");
  if (!terms.batch.empty() && !terms.forward() && settings.at("microbatch").get<std::int64_t>() > 0)
    throw Refusal(fmt::format("has a {} of whole batches, which cannot be computed in parts: leave `microbatch` out",
                              terms.batch));
  for (const std::string& method : terms.methods()) check_signature(module, method);
  return terms;
}

// What is looked at is what will be executed.
void check_graph(const torch::jit::Method& method) {
  simplify(method);
  if (const auto impure = impure_operator(method); !impure.empty()) throw Refusal(impure);
  if (const auto write = lasting_write(method); !write.empty()) throw Refusal(write);
}

std::optional<Module> open_loss(const channel::Pieces::Piece& bytes, const Terms& terms) {
  if (bytes.bytes == 0) return {};
  if (!terms.forward()) throw Refusal("is not trained by its forward: leave `loss_module` out");
  Module loss = load_module(bytes);
  const auto method = loss.find_method("forward");
  if (!method || method->function().getSchema().arguments().size() != 3)
    throw Refusal("`loss_module`: expected forward(image_embeddings: Tensor, text_embeddings: Tensor) -> Tensor");
  check_graph(*method);
  return loss;
}

// Some of the names that a pattern was not found in.
std::string some_names(const Module& module) {
  std::string names;
  for (const auto& parameter : module.named_parameters()) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "" : ", ") + parameter.name;
  }
  return names;
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
  const auto settings = nlohmann::json::parse(pieces.next().text());
  const auto pattern = settings.at("train").get<std::string>();
  Module module = load_module(bytes);
  const Terms terms = terms_of(module, settings);
  auto loss = open_loss(loss_bytes, terms);
  module.train();
  for (const std::string& method : terms.methods()) check_graph(module.get_method(method));
  auto trainee = std::make_unique<Trainee>(module, std::move(loss), settings, terms);
  const auto& parameters = trainee->parameters();
  if (parameters.empty() && pattern.empty()) throw Refusal("has no parameters that want a gradient (requires_grad)");
  if (parameters.empty())
    throw Refusal(fmt::format("has no parameter whose name `train` is found in; its names are {}", some_names(module)));
  const std::string facts =
      nlohmann::json({{"forward", terms.forward()},
                      {"parameters", places_of(parameters, trainable(load_module(marked_bytes), pattern))}})
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t size = facts.size();
  answer.add(&size, sizeof size);
  answer.add(facts.data(), facts.size());
  for (const Named& parameter : parameters) {
    const at::Tensor flat = parameter.value.detach().to(at::kDouble).contiguous();
    answer.add(flat.data_ptr<double>(), flat.numel() * sizeof(double));
  }
  return trainee;
}

}  // namespace eigenveil
