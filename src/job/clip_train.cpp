// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/clip_train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/job/release.hpp"
#include "eigenveil/query/gradient_oracle.hpp"
#include "eigenveil/torch/module.hpp"
#include "training_run.hpp"

namespace eigenveil {
namespace {

using Tensors = std::vector<Tensor>;

Status check_job(const ClipTrainJob& job) {
  if (job.privacy.adjacency != Adjacency::kAddRemoveOne)
    return usage_error("clip train draws Poisson batches, which are accounted for `adjacency` add-remove-one alone");
  if (job.privacy.calibration == Calibration::kPaper)
    return usage_error("clip train has no `calibration` paper: the paper's noise is not enough (docs/departures.md)");
  if (job.run.engine) return usage_error("clip train runs in one process: leave `engine` out");
  if (job.person) EIGENVEIL_TRY(check(*job.person));
  if (job.person && (job.person->most_rows || job.person->missing_is_own))
    return usage_error(
        "a step of clip train takes one pair of a person, and every integer is an id: leave `max_rows_per_person` and "
        "`missing_person` out");
  if (job.steps < 1) return usage_error(fmt::format("`steps` must be 1 or more, but is {}", job.steps));
  if (job.checkpoint_every < 1)
    return usage_error(fmt::format("`checkpoint_every` must be 1 or more, but is {}", job.checkpoint_every));
  if (job.resume && job.checkpoint.empty()) return usage_error("`resume` needs `checkpoint`, the folder of the run");
  if (!job.checkpoint.empty() && !job.privacy.use_ledger)
    return usage_error(
        "`checkpoint` needs a ledger, which alone knows what a run may go on from: leave `no_ledger` or `checkpoint` "
        "out");
  for (const auto& [flag, value] : {std::pair("`lr`", job.lr), std::pair("`temperature`", job.temperature)})
    if (!(value > 0) || !std::isfinite(value))
      return usage_error(fmt::format("{} must be finite and positive, but is {}", flag, value));
  return check_writable(job.out);
}

// The parts of a batch that the module takes, and only those.
Result<Tensors> parts_for(const TorchTrainee& trainee, Tensors all, const std::string& path) {
  const auto wanted = trainee.wanted();
  if (wanted.empty()) return all;
  Tensors parts;
  for (const std::string& name : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == name; });
    if (found == all.end())
      return bad_input(fmt::format("{}: has no array '{}', which forward(images, tokens) takes", path, name));
    parts.push_back(std::move(*found));
  }
  return parts;
}

// Made-up pairs of the same shapes: floats between 0 and 1, all integers 1.
Tensors made_up(const Tensors& like, std::size_t rows) {
  Tensors batch;
  std::uint32_t state = 1;
  for (const Tensor& part : like) {
    Tensor made{part.name, part.shape, {}, {}, part.whole};
    made.shape.front() = static_cast<std::int64_t>(rows);
    if (part.whole) made.integers.assign(rows * part.row_size(), 1);
    for (std::size_t i = 0; !part.whole && i < rows * part.row_size(); ++i) {
      state = state * 1664525U + 1013904223U;
      made.floats.push_back(static_cast<float>(state >> 8) * 0x1p-24F);
    }
    batch.push_back(std::move(made));
  }
  return batch;
}

// Runs the module on made-up pairs: what fails there would fail after the charge. A batch can have any size.
Status dry_run(TorchTrainee& trainee, const Tensors& like) {
  for (const std::size_t rows : {1U, 2U, 5U}) {
    const auto gradient = trainee.gradient(made_up(like, rows), trainee.parameters(), 1, RowsAre::kMadeUp);
    if (!gradient)
      return bad_input(
          fmt::format("{} (on a batch of {} made-up pairs; nothing was charged)", gradient.error().message, rows));
    if (const auto checked = NoisyVector::on_lattice(*gradient, 1); !checked)
      return bad_input(
          fmt::format("{} (on a batch of {} made-up pairs; nothing was charged)", checked.error().message, rows));
  }
  return {};
}

// Hashes of what the run reads: they are the same when it is resumed, or it is not.
Result<std::map<std::string, std::string>> files_of(const ClipTrainJob& job, const TorchTraineeOptions& modules) {
  std::map<std::string, std::string> files = {{"module", modules.module.sha256}};
  if (modules.loss_module) files["loss module"] = modules.loss_module->sha256;
  if (!job.privacy.use_ledger) return files;
  const auto ledger = EIGENVEIL_TRY(ledger_of(job.privacy));
  // A hash without a key would let others try what the file may hold.
  files["data"] = EIGENVEIL_TRY(ledger.content_key(job.data));
  return files;
}

// Takes the array that says whose a pair is out of the others: people by number, in the order of their first pairs.
Result<std::vector<std::uint32_t>> take_person(const std::optional<PersonOptions>& chosen, Tensors& all,
                                               const std::string& path) {
  if (!chosen) return std::vector<std::uint32_t>();
  const std::string& name = chosen->column;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == name; });
  if (found == all.end()) return bad_input(fmt::format("{}: has no array '{}' that says whose a pair is", path, name));
  const Tensor ids = std::move(*found);
  all.erase(found);
  if (!ids.whole || ids.row_size() != 1 || all.empty())
    return bad_input(fmt::format("{}: '{}' must have one integer for each pair of the other arrays", path, name));
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  std::map<std::int64_t, std::uint32_t> numbers;
  std::vector<std::uint32_t> person;
  for (const std::int64_t id : ids.integers) {
    if (id <= -kExact || id >= kExact)  // no abs: the least of all has none
      return bad_input(fmt::format("{}: '{}' has an id of 2^53 or more, which may be rounded", path, name));
    person.push_back(numbers.try_emplace(id, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return person;
}

Status train(const ClipTrainJob& job, TorchTrainee& trainee, const Tensors& data,
             const std::vector<std::uint32_t>& person, TrainingRun& run, Observer& observer) {
  TrainingState& state = run.state();
  const std::size_t count = state.parameters.size();
  auto oracle =
      EIGENVEIL_TRY(GradientOracle::make(*run.charge().work, data.front().rows(), count, job.clip, run.take_random(job),
                                         kNoisyGradient, run.steps(), person, job.person ? job.person->least_rows : 1));
  const Descent descent(job.optimizer, job.lr);
  const auto gradient = [&](const std::vector<std::size_t>& chosen, std::uint64_t seed) {
    Tensors batch;
    for (const Tensor& part : data) batch.push_back(part.take(chosen));
    return trainee.gradient(batch, {state.parameters.data(), count}, seed, RowsAre::kPrivate);
  };
  observer.step("training");
  for (TrainingState next; run.steps() < job.steps;) {
    const auto noisy = oracle.ask(kNoisyGradient, gradient);
    if (!noisy) return run.stop(job, noisy.error());
    descent.step(state.parameters, state.descent, noisy->value().col(0), next.parameters, next.descent);
    if (!next.parameters.allFinite()) return run.stop(job, bad_input("the parameters overflow; lower `lr` or `clip`"));
    std::swap(state, next);
    // Kept before the next gradient is taken at these parameters.
    if (run.steps() % job.checkpoint_every == 0 || run.steps() == job.steps) EIGENVEIL_TRY(run.checkpoint());
    observer.progress(static_cast<double>(run.steps()) / static_cast<double>(job.steps));
  }
  return oracle.complete() ? Status() : internal_error("the run did not ask for all that was planned");
}

}  // namespace

Result<nlohmann::json> run_clip_train(const ClipTrainJob& job, Observer& observer) {
  EIGENVEIL_TRY(check_job(job));
  if (const auto rate = SampleRate::of(job.sample_rate); !rate)
    return usage_error(fmt::format("`sample_rate`: {}", rate.error().message));
  observer.step("loading the module");
  const auto module = EIGENVEIL_TRY(ModuleFile::read(job.module));
  TorchTraineeOptions options{module, {}, job.temperature, {thread_count(job.run), job.run.memory, job.module_seconds}};
  if (!job.loss_module.empty()) {
    options.loss_module = EIGENVEIL_TRY(ModuleFile::read(job.loss_module));
  }
  const auto trainee = EIGENVEIL_TRY(torch_trainee(options));
  const std::vector<double>& start = trainee->parameters();

  observer.step("reading pairs");
  auto tensors = EIGENVEIL_TRY(read_tensors(job.data));
  const auto person = EIGENVEIL_TRY(take_person(job.person, tensors, job.data));
  auto data = EIGENVEIL_TRY(parts_for(*trainee, std::move(tensors), job.data));
  observer.step("trying the module on made-up pairs");
  EIGENVEIL_TRY(dry_run(*trainee, data));

  const Vector parameters = Eigen::Map<const Vector>(start.data(), start.size());
  const auto files = EIGENVEIL_TRY(files_of(job, options));
  auto run = EIGENVEIL_TRY(TrainingRun::open(job, files, parameters, observer));
  EIGENVEIL_TRY(train(job, *trainee, data, person, run, observer));

  nlohmann::json manifest =
      common_manifest("clip-train", "batch", training_options_json(job), job.privacy, run.charge(), 0);
  manifest.erase("noisy_rows");  // nothing was released about their number
  if (job.person) add_person(manifest, *job.person, job.person->column, std::nullopt);
  manifest["parameters"] = start.size();
  observer.step("writing module");
  const auto bytes = EIGENVEIL_TRY(trainee->file({run.state().parameters.data(), start.size()}, manifest.dump(1)));
  EIGENVEIL_TRY(write_file(job.out, bytes));
  (void)record_file(job.privacy, run.charge(), job.out);
  EIGENVEIL_TRY(run.finish());
  observer.step("done");
  return manifest;
}

}  // namespace eigenveil
