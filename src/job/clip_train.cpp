// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/clip_train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <regex>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/estimators/start.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/job/release.hpp"
#include "eigenveil/query/gradient_oracle.hpp"
#include "eigenveil/torch/module.hpp"
#include "training_run.hpp"

namespace eigenveil {
namespace {

using Tensors = std::vector<Tensor>;

// What is wrong with a number that must be finite and positive.
Status positive(const char* name, double value) {
  if (value > 0 && std::isfinite(value)) return {};
  return usage_error(fmt::format("{} must be finite and positive, but is {}", name, value));
}

Status check_descent(const DescentOptions& descent, long long steps) {
  EIGENVEIL_TRY(positive("`lr`", descent.rate));
  EIGENVEIL_TRY(positive("`adam_eps`", descent.adam_eps));
  for (const auto& [name, beta] : {std::pair("`beta1`", descent.beta1), std::pair("`beta2`", descent.beta2)})
    if (!(beta >= 0 && beta < 1))
      return usage_error(fmt::format("{} must be from 0 to below 1, but is {}", name, beta));
  if (!(descent.decay >= 0) || !(descent.decay * descent.rate < 1))
    return usage_error(fmt::format("`weight_decay` must be from 0 to below 1 / `lr`, but is {}", descent.decay));
  if (descent.warmup < 0 || descent.warmup > steps)
    return usage_error(fmt::format("`warmup` must be from 0 to `steps`, but is {}", descent.warmup));
  return {};
}

// Which losses are trained, and how.
Status check_terms(const ClipTrainJob& job) {
  if (!job.clip && !job.sample_clip)
    return usage_error("give `clip`, for the gradient of a batch, `sample_clip`, for that of each pair, or both");
  if (!job.clip && job.batch_rate) return usage_error("`batch_rate` is for the gradient of a batch: give `clip` too");
  if (!job.clip && !job.loss_module.empty())
    return usage_error("`loss_module` is for the gradient of a batch: give `clip` too");
  if (!(job.sample_share > 0 && job.sample_share < 1))
    return usage_error(fmt::format("`sample_share` must lie between 0 and 1, but is {}", job.sample_share));
  EIGENVEIL_TRY(positive("`sample_weight`", job.sample_weight));
  EIGENVEIL_TRY(positive("`sample_clip`", job.sample_clip.value_or(1)));
  if (job.privacy.calibration == Calibration::kPaper && job.sample_clip)
    return usage_error("`calibration` paper is the paper's algorithm, which clips batches: leave `sample_clip` out");
  for (const auto& [name, rate] : {std::pair("`sample_rate`", job.sample_rate),
                                   std::pair("`batch_rate`", job.batch_rate.value_or(job.sample_rate))})
    if (const auto valid = SampleRate::of(rate); !valid)
      return usage_error(fmt::format("{}: {}", name, valid.error().message));
  constexpr std::size_t kLongest = 1000;
  if (job.train.size() > kLongest) return usage_error("`train` is longer than 1000 characters");
  try {
    const std::regex pattern(job.train);
  } catch (const std::regex_error&) {
    return usage_error(fmt::format("`train` '{}': is no regular expression", printable(job.train)));
  }
  return {};
}

Status check_job(const ClipTrainJob& job) {
  if (job.privacy.adjacency != Adjacency::kAddRemoveOne)
    return usage_error("clip train draws Poisson batches, which are accounted for `adjacency` add-remove-one alone");
  if (job.run.engine) return usage_error("clip train runs in one process: leave `engine` out");
  if (job.person) EIGENVEIL_TRY(check(*job.person));
  if (job.person && (job.person->most_rows || job.person->missing_is_own))
    return usage_error(
        "a step of clip train takes one pair of a person, and every integer is an id: leave `max_rows_per_person` and "
        "`missing_person` out");
  if (job.steps < 1) return usage_error(fmt::format("`steps` must be 1 or more, but is {}", job.steps));
  for (const auto& [name, every] :
       {std::pair("`checkpoint_every`", job.checkpoint_every), std::pair("`public_every`", job.public_every)})
    if (every < 1) return usage_error(fmt::format("{} must be 1 or more, but is {}", name, every));
  if (job.resume && job.checkpoint.empty()) return usage_error("`resume` needs `checkpoint`, the folder of the run");
  if (!job.checkpoint.empty() && !job.privacy.use_ledger)
    return usage_error(
        "`checkpoint` needs a ledger, which alone knows what a run may go on from: leave `no_ledger` or `checkpoint` "
        "out");
  EIGENVEIL_TRY(positive("`temperature`", job.temperature));
  EIGENVEIL_TRY(check_terms(job));
  EIGENVEIL_TRY(check_descent(job.descent, job.steps));
  return check_writable(job.out);
}

// The parts of a batch that the module takes, and only those.
Result<Tensors> parts_for(const TorchTrainee& trainee, Tensors all, const std::string& path) {
  Tensors parts;
  for (const std::string& name : trainee.needed()) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == name; });
    if (found == all.end())
      return bad_input(fmt::format("{}: has no array '{}', which forward(images, tokens) takes", path, name));
    if (trainee.takes_no_other()) parts.push_back(std::move(*found));
  }
  if (trainee.takes_no_other()) return parts;
  return all;
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
Status dry_run(const ClipTrainJob& job, TorchTrainee& trainee, const Tensors& like) {
  const auto judged = [&](const Result<std::vector<double>>& gradient, std::size_t rows) -> Status {
    const Status good = gradient ? Status() : Status(gradient.error());
    const auto lattice = good ? NoisyVector::on_lattice(*gradient, 1) : Result<PrivateSum>(good.error());
    if (lattice) return {};
    return bad_input(
        fmt::format("{} (on a batch of {} made-up pairs; nothing was charged)", lattice.error().message, rows));
  };
  if (job.sample_clip)
    EIGENVEIL_TRY(judged(trainee.gradients(made_up(like, 1), trainee.parameters(), {1}, RowsAre::kMadeUp), 1));
  for (const std::size_t rows : {1U, 2U, 5U})
    if (job.clip)
      EIGENVEIL_TRY(judged(trainee.gradient(made_up(like, rows), trainee.parameters(), 1, RowsAre::kMadeUp), rows));
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

// The loss on public pairs, of 256 at a time.
Result<TorchTrainee::Losses> public_losses(TorchTrainee& trainee, const Tensors& pairs, std::span<const double> now) {
  const std::size_t rows = pairs.front().rows();
  constexpr std::size_t kAtOnce = 256;
  TorchTrainee::Losses mean{0, 0};
  for (std::size_t first = 0; first < rows; first += kAtOnce) {
    std::vector<std::size_t> some(std::min(kAtOnce, rows - first));
    std::iota(some.begin(), some.end(), first);
    Tensors part;
    for (const Tensor& whole : pairs) part.push_back(whole.take(some));
    const auto found = EIGENVEIL_TRY(trainee.losses(part, now));
    const double share = static_cast<double>(some.size()) / static_cast<double>(rows);
    mean.batch += share * found.batch;
    mean.each += share * found.each;
  }
  return mean;
}

// A step's noisy gradients, as the plan pays for them, and the losses on public pairs.
class Trainer {
 public:
  Trainer(const ClipTrainJob& job, TorchTrainee& trainee, const Tensors& data, const Tensors& publics)
      : job_(job), trainee_(trainee), data_(data), publics_(publics) {}

  Status train(const std::vector<std::uint32_t>& person, TrainingRun& run, Observer& observer) {
    TrainingState& state = run.state();
    const std::size_t entries = state.parameters.size();
    auto oracle = EIGENVEIL_TRY(GradientOracle::make(*run.charge().work, static_cast<std::size_t>(data_.front().rows()),
                                                     entries, run.take_random(job_), run.steps(), person,
                                                     job_.person ? job_.person->least_rows : 1));
    const Descent descent(job_.descent);
    observer.step("training");
    for (TrainingState next; run.steps() < job_.steps;) {
      const auto noisy = gradient(oracle, {state.parameters.data(), entries});
      if (!noisy) return run.stop(job_, noisy.error());
      descent.step(state.parameters, state.descent, *noisy, next.parameters, next.descent);
      if (!next.parameters.allFinite())
        return run.stop(job_, bad_input("the parameters overflow; lower `lr` or `clip`"));
      std::swap(state, next);
      const bool last = run.steps() == job_.steps;
      const bool told = !publics_.empty() && (last || run.steps() % job_.public_every == 0);
      // Kept before the next gradient is taken at these parameters, and before anything is told of them.
      if (told || last || run.steps() % job_.checkpoint_every == 0) EIGENVEIL_TRY(run.checkpoint());
      if (told) tell(run, observer);
      observer.progress(static_cast<double>(run.steps()) / static_cast<double>(job_.steps));
    }
    return all_asked(oracle.complete());
  }

  // What was told, for the manifest.
  const nlohmann::json& told() const { return told_; }

 private:
  Tensors rows(const std::vector<std::size_t>& chosen) const {
    Tensors batch;
    for (const Tensor& part : data_) batch.push_back(part.take(chosen));
    return batch;
  }

  Result<Vector> gradient(GradientOracle& oracle, std::span<const double> now) {
    Vector step = Vector::Zero(now.size());
    if (job_.sample_clip) {
      // A few hundred pairs, or 64 MB of gradients
      std::size_t at_once = std::clamp<std::size_t>((std::size_t{8} << 20) / now.size(), 1, 256);
      if (job_.microbatch > 0) at_once = std::min(at_once, job_.microbatch);
      const auto sum = EIGENVEIL_TRY(
          oracle.ask_each(kNoisySum, *job_.sample_clip, at_once,
                          [&](const std::vector<std::size_t>& chosen, const std::vector<std::uint64_t>& seeds) {
                            return trainee_.gradients(rows(chosen), now, seeds, RowsAre::kPrivate);
                          }));
      step += job_.sample_weight * sum.value().col(0);
    }
    if (job_.clip) {
      const auto noisy = EIGENVEIL_TRY(
          oracle.ask(kNoisyGradient, *job_.clip, [&](const std::vector<std::size_t>& chosen, std::uint64_t seed) {
            return trainee_.gradient(rows(chosen), now, seed, RowsAre::kPrivate);
          }));
      step += noisy.value().col(0);
    }
    return step;
  }

  // Parameters on which it fails are no reason to stop.
  void tell(TrainingRun& run, Observer& observer) {
    const Vector& now = run.state().parameters;
    const auto losses = public_losses(trainee_, publics_, {now.data(), static_cast<std::size_t>(now.size())});
    nlohmann::json said = {{"step", run.steps()}};
    std::string words;
    const auto add = [&](const char* name, const char* of, double loss) {
      said[name] = losses ? nlohmann::json(loss) : nlohmann::json();
      words += losses ? fmt::format(", {} {:.4g}", of, loss) : fmt::format(", {} not finite", of);
    };
    if (job_.sample_clip) add("sample_loss", "per pair", losses ? losses->each : 0);
    if (job_.clip) add("batch_loss", "of batches", losses ? losses->batch : 0);
    told_.push_back(said);
    observer.step(fmt::format("loss on public pairs after step {}{}", run.steps(), words));
  }

  const ClipTrainJob& job_;
  TorchTrainee& trainee_;
  const Tensors& data_;
  const Tensors& publics_;
  nlohmann::json told_ = nlohmann::json::array();
};

// Pairs that nobody owns, of the same arrays as the private ones.
Result<Tensors> read_public(const ClipTrainJob& job, TorchTrainee& trainee, const Tensors& like) {
  if (job.public_pairs.empty()) return Tensors{};
  auto all = EIGENVEIL_TRY(read_tensors(job.public_pairs));
  Tensors parts;
  for (const Tensor& part : like) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == part.name; });
    if (found == all.end() || found->whole != part.whole || found->row_size() != part.row_size() ||
        found->shape.size() != part.shape.size() || found->rows() < 1)
      return bad_input(
          fmt::format("{}: needs an array '{}' of the same kind as in {}", job.public_pairs, part.name, job.data));
    parts.push_back(std::move(*found));
  }
  EIGENVEIL_TRY(public_losses(trainee, parts, trainee.parameters()));  // what fails here costs nothing
  return parts;
}

// What a module promised that was trained before. Its numbers are in the file that is written, trained further or not;
// those of a loss are in what it trains.
Status add_begun_with(nlohmann::json& promises, const std::string& path, const ModuleFile& module, bool people) {
  const auto manifest = EIGENVEIL_TRY(module.manifest());
  return add_promises(promises, EIGENVEIL_TRY(promises_in(manifest, path, module.sha256, people)));
}

}  // namespace

Result<nlohmann::json> run_clip_train(const ClipTrainJob& job, Observer& observer) {
  EIGENVEIL_TRY(check_job(job));
  observer.step("loading the module");
  const auto module = EIGENVEIL_TRY(ModuleFile::read(job.module));
  nlohmann::json promises = nlohmann::json::array();
  EIGENVEIL_TRY(add_begun_with(promises, job.module, module, job.person.has_value()));
  TorchTraineeOptions options{module, {}, job.temperature, {thread_count(job.run), job.run.memory, job.module_seconds}};
  options.each = job.sample_clip.has_value();
  options.batch = job.clip.has_value();
  options.train = job.train;
  options.microbatch = job.microbatch;
  if (!job.loss_module.empty()) {
    options.loss_module = EIGENVEIL_TRY(ModuleFile::read(job.loss_module));
    EIGENVEIL_TRY(add_begun_with(promises, job.loss_module, *options.loss_module, job.person.has_value()));
  }
  const auto trainee = EIGENVEIL_TRY(torch_trainee(options));
  const std::vector<double>& given = trainee->parameters();

  observer.step("reading pairs");
  const auto files = EIGENVEIL_TRY(files_of(job, options));
  auto tensors = EIGENVEIL_TRY(read_tensors(job.data));
  // What is pinned is what was read.
  const auto after = EIGENVEIL_TRY(files_of(job, options));
  if (after != files) return bad_input(fmt::format("{}: the file changed while it was read", job.data));
  const auto person = EIGENVEIL_TRY(take_person(job.person, tensors, job.data));
  // People are numbered as they come.
  if (person.size() > 1 && person.back() + 1 == person.size()) observer.remark(kOwnPersonEach);
  auto data = EIGENVEIL_TRY(parts_for(*trainee, std::move(tensors), job.data));
  observer.step("trying the module on made-up pairs");
  EIGENVEIL_TRY(dry_run(job, *trainee, data));
  const auto publics = EIGENVEIL_TRY(read_public(job, *trainee, data));

  const Vector parameters = Eigen::Map<const Vector>(given.data(), given.size());
  auto run = EIGENVEIL_TRY(TrainingRun::open(job, files, parameters, observer));
  Trainer trainer(job, *trainee, data, publics);
  EIGENVEIL_TRY(trainer.train(person, run, observer));

  const char* method = !job.clip ? "sample" : !job.sample_clip ? "batch" : "sample and batch";
  nlohmann::json manifest =
      common_manifest("clip-train", method, training_options_json(job), job.privacy, run.charge(), 0);
  if (!publics.empty()) manifest["public_losses"] = trainer.told();
  manifest.erase("noisy_rows");  // nothing was released about their number
  if (job.person) add_person(manifest, *job.person, job.person->column, std::nullopt);
  manifest["parameters"] = given.size();
  Fit said;
  add_start(said, promises, "began with the numbers");
  add_said(manifest, std::move(said));
  observer.step("writing module");
  const auto bytes = EIGENVEIL_TRY(trainee->file({run.state().parameters.data(), given.size()}, manifest.dump(1)));
  EIGENVEIL_TRY(write_file(job.out, bytes));
  (void)record_file(run.charge().entry, job.out);
  EIGENVEIL_TRY(run.finish());
  observer.step("done");
  return manifest;
}

}  // namespace eigenveil
