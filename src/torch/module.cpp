// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/torch/module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "../data/file.hpp"
#include "archive.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/data/sha256.hpp"
#include "process.hpp"

namespace eigenveil {
namespace {

using channel::Ask;
using channel::Body;

constexpr std::size_t kMostFeatures = 1'000'000;
constexpr std::size_t kLargestFile = std::size_t{4} << 30;

std::span<const double> doubles_in(const std::vector<char>& bytes) {
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}

// The numbers that a body refers to, which must outlive it.
struct TensorHead {
  std::uint64_t whole;
  explicit TensorHead(const Tensor& tensor) : whole(tensor.whole ? 1 : 0) {}
};

void add_tensor(Body& body, const Tensor& tensor, const TensorHead& head) {
  body.add(tensor.name);
  body.add(tensor.shape.data(), tensor.shape.size() * sizeof(std::int64_t));
  body.add(&head.whole, sizeof head.whole);
  if (tensor.whole)
    body.add(tensor.integers.data(), tensor.integers.size() * sizeof(std::int64_t));
  else
    body.add(tensor.floats.data(), tensor.floats.size() * sizeof(float));
}

// ---- encoders

class SandboxedEncoder final : public TorchEncoder {
 public:
  explicit SandboxedEncoder(std::unique_ptr<ModuleProcess> process) : process_(std::move(process)) {}

  std::size_t features() const override { return features_; }

  Result<RowMajorMatrix> encode(const Tensor& rows) const override { return encode(rows, RowsAre::kPrivate); }

  Result<RowMajorMatrix> encode(const Tensor& rows, RowsAre are) const {
    const std::size_t count = rows.rows();
    RowMajorMatrix encoded(rows.rows(), features_);
    if (count == 0) return encoded;
    Body body;
    const TensorHead head(rows);
    add_tensor(body, rows, head);
    const std::size_t most = features_ > 0 ? features_ : kMostFeatures;
    const std::lock_guard lock(mutex_);
    const auto answer = EIGENVEIL_TRY(
        process_->ask({Ask::kEncode, body, count * most * sizeof(double), are, features_, "gives features that are"}));
    const auto numbers = doubles_in(answer);
    if (numbers.empty() || numbers.size() % count != 0 || (features_ > 0 && numbers.size() != count * features_))
      return bad_input("a module gave rows of one size different numbers of features");
    encoded = Eigen::Map<const RowMajorMatrix>(numbers.data(), rows.rows(), numbers.size() / count);
    if (!encoded.allFinite()) return bad_input("a module gave features that are not finite");
    return encoded;
  }

  // Learns the number of features from one row, and looks whether the order of rows or their company matters.
  Status try_out(const Tensor& like, const std::string& name) {
    const auto one = EIGENVEIL_TRY(encode(like, RowsAre::kMadeUp));
    features_ = one.cols();
    constexpr std::int64_t kTried = 6;
    Tensor rows = like;
    rows.shape.front() = kTried;
    rows.floats.clear();
    rows.integers.clear();
    for (std::int64_t i = 0; i < kTried; ++i) {
      for (const float x : like.floats) rows.floats.push_back(x + 0.125F * static_cast<float>(i));
      for (const std::int64_t x : like.integers) rows.integers.push_back(x + i);
    }
    Tensor back = rows.take({5, 4, 3, 2, 1, 0});
    const auto there = EIGENVEIL_TRY(encode(rows, RowsAre::kMadeUp));
    const auto again = EIGENVEIL_TRY(encode(back, RowsAre::kMadeUp));
    if (there.colwise().reverse() == again && there.row(0) == one.row(0)) return {};
    return bad_input(fmt::format("{}: gives a row other features when other rows come before it", printable(name)));
  }

 private:
  std::unique_ptr<ModuleProcess> process_;
  std::size_t features_ = 0;
  mutable std::mutex mutex_;
};

// ---- training

class SandboxedTrainee final : public TorchTrainee {
 public:
  SandboxedTrainee(ModuleFile file, std::unique_ptr<ModuleProcess> process)
      : file_(std::move(file)), process_(std::move(process)) {}

  Status open(const TorchTraineeOptions& options) {
    const auto marked = marked_archive(file_.bytes);
    if (!marked) return bad_input(fmt::format("{}: {}", printable(file_.name), marked.error().message));
    Body body;
    body.add(file_.bytes);
    body.add(*marked);
    const std::string none;
    body.add(options.loss_module ? std::as_const(options.loss_module->bytes) : none);
    const std::string settings = nlohmann::json({{"temperature", options.temperature},
                                                 {"each", options.each},
                                                 {"batch", options.batch},
                                                 {"train", options.train},
                                                 {"microbatch", options.microbatch}})
                                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    body.add(settings);
    each_ = options.each;
    const std::size_t capacity = (std::size_t{16} << 20) + 2 * file_.bytes.size();
    const auto answer = process_->ask({Ask::kOpenTrainee, body, capacity, RowsAre::kMadeUp});
    return answer ? take_facts(*answer) : Status(answer.error());
  }

  const std::vector<double>& parameters() const override { return parameters_; }
  std::vector<std::string> needed() const override {
    return forward_ ? std::vector<std::string>{"images", "tokens"} : std::vector<std::string>{};
  }
  bool takes_no_other() const override { return forward_ && !each_; }

  Result<std::vector<double>> gradient(const std::vector<Tensor>& batch, std::span<const double> parameters,
                                       std::uint64_t seed, RowsAre rows) override {
    return ask(Ask::kGradient, batch, parameters, {}, seed, rows, parameters.size());
  }

  Result<std::vector<double>> gradients(const std::vector<Tensor>& rows, std::span<const double> parameters,
                                        const std::vector<std::uint64_t>& seeds, RowsAre are) override {
    if (rows.empty() || static_cast<std::size_t>(rows.front().rows()) != seeds.size())
      return internal_error("every row needs a seed");
    return ask(Ask::kGradients, rows, parameters, seeds, 0, are, seeds.size() * parameters.size());
  }

  Result<Losses> losses(const std::vector<Tensor>& rows, std::span<const double> parameters) override {
    const auto found = EIGENVEIL_TRY(ask(Ask::kLoss, rows, parameters, {}, 0, RowsAre::kMadeUp, 2));
    if (!std::isfinite(found[0]) || !std::isfinite(found[1]))
      return bad_input("the loss on public pairs is not finite");
    return Losses{found[0], found[1]};
  }

  Result<std::string> file(std::span<const double> parameters, const std::string& manifest) const override {
    if (parameters.size() != parameters_.size()) return internal_error("other parameters than the module has");
    return with_numbers(file_.bytes, places_, parameters, manifest);
  }

 private:
  Result<std::vector<double>> ask(Ask what, const std::vector<Tensor>& rows, std::span<const double> parameters,
                                  const std::vector<std::uint64_t>& seeds, std::uint64_t seed, RowsAre are,
                                  std::size_t expected) {
    Body body;
    const std::uint64_t parts = rows.size();
    body.add(parameters.data(), parameters.size_bytes());
    body.add(seeds.data(), seeds.size() * sizeof(std::uint64_t));
    body.add(&parts, sizeof parts);
    const std::vector<TensorHead> heads(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) add_tensor(body, rows[i], heads[i]);
    const auto answer = EIGENVEIL_TRY(process_->ask({what, body, expected * sizeof(double), are, seed, "the loss is"}));
    const auto numbers = doubles_in(answer);
    if (numbers.size() != expected) return internal_error("a module's gradient has another length");
    return std::vector<double>(numbers.begin(), numbers.end());
  }

  // size, JSON, values
  Status take_facts(const std::vector<char>& answer) {
    const Error damaged = internal_error("the module's process tells nonsense about its parameters");
    std::uint64_t size = 0;
    if (answer.size() < sizeof size) return damaged;
    std::memcpy(&size, answer.data(), sizeof size);
    if (size > answer.size() - sizeof size) return damaged;
    const char* text = answer.data() + sizeof size;
    const auto facts = nlohmann::json::parse(text, text + size, nullptr, false);
    try {
      forward_ = facts.at("forward").get<bool>();
      for (const auto& place : facts.at("parameters"))
        places_.push_back({place.at("record").get<std::uint64_t>(), place.at("offset").get<std::uint64_t>(),
                           place.at("count").get<std::uint64_t>(), place.at("double").get<bool>()});
    } catch (const nlohmann::json::exception&) {
      return damaged;
    }
    auto numbers = numbers_at(file_.bytes, places_);
    if (!numbers) return bad_input(fmt::format("{}: {}", printable(file_.name), numbers.error().message));
    parameters_ = *std::move(numbers);
    const std::size_t bytes = parameters_.size() * sizeof(double);
    if (answer.size() - sizeof size - size != bytes || std::memcmp(text + size, parameters_.data(), bytes) != 0)
      return bad_input(
          fmt::format("{}: makes its parameters while it loads; save them as they are", printable(file_.name)));
    return {};
  }

  ModuleFile file_;
  std::unique_ptr<ModuleProcess> process_;
  bool forward_ = false;
  bool each_ = false;
  std::vector<ParameterPlace> places_;
  std::vector<double> parameters_;
};

}  // namespace

Result<ModuleFile> ModuleFile::read(const std::string& path) {
  const auto file = EIGENVEIL_TRY(data::File::open(path));
  if (file->size() > kLargestFile) return bad_input(fmt::format("{}: is larger than 4 GiB", printable(path)));
  ModuleFile module{std::filesystem::path(path).filename().string(), std::string(file->size(), '\0'), {}};
  EIGENVEIL_TRY(file->read_all(0, module.bytes.data(), module.bytes.size()));
  module.sha256 = sha256_of(module.bytes);
  return module;
}

Result<std::optional<std::string>> ModuleFile::manifest() const {
  auto found = manifest_in(bytes);
  if (found) return found;
  return bad_input(fmt::format("{}: {}", printable(name), found.error().message));
}

Result<std::unique_ptr<TorchEncoder>> torch_encoder(const ModuleFile& file, const std::string& method,
                                                    const Tensor& like, const ModuleLimits& limits) {
  auto process = EIGENVEIL_TRY(ModuleProcess::start(file.name, limits));
  Body body;
  body.add(file.bytes);
  body.add(method);
  EIGENVEIL_TRY(process->ask({Ask::kOpenEncoder, body, 1000, RowsAre::kMadeUp}));
  auto encoder = std::make_unique<SandboxedEncoder>(std::move(process));
  EIGENVEIL_TRY(encoder->try_out(like, file.name));
  return std::unique_ptr<TorchEncoder>(std::move(encoder));
}

Result<std::unique_ptr<TorchTrainee>> torch_trainee(const TorchTraineeOptions& options) {
  auto process = EIGENVEIL_TRY(ModuleProcess::start(options.module.name, options.limits));
  auto trainee = std::make_unique<SandboxedTrainee>(options.module, std::move(process));
  EIGENVEIL_TRY(trainee->open(options));
  return std::unique_ptr<TorchTrainee>(std::move(trainee));
}

}  // namespace eigenveil
