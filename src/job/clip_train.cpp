#include "eigenveil/job/clip_train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/privacy/noisy_vector.hpp"
#include "eigenveil/privacy/poisson_sample.hpp"
#include "eigenveil/torch/module.hpp"
#include "run_folder.hpp"

namespace eigenveil {
namespace {

using Batch = std::vector<Tensor>;

Status check_job(const ClipTrainJob& job) {
  if (job.privacy.adjacency != Adjacency::kAddRemoveOne)
    return usage_error("clip train draws Poisson batches, which are accounted for --adjacency add-remove-one alone");
  if (job.privacy.calibration == Calibration::kPaper)
    return usage_error("clip train has no --calibration paper: the paper's noise is not enough (docs/departures.md)");
  if (job.run.engine) return usage_error("clip train runs in one process: leave --engine out");
  if (job.steps < 1) return usage_error(fmt::format("--steps must be 1 or more, but is {}", job.steps));
  if (job.checkpoint_every < 1)
    return usage_error(fmt::format("--checkpoint-every must be 1 or more, but is {}", job.checkpoint_every));
  if (job.resume && job.checkpoint.empty()) return usage_error("--resume needs --checkpoint, the folder of the run");
  for (const auto& [flag, value] : {std::pair("--lr", job.lr), std::pair("--temperature", job.temperature)})
    if (!(value > 0) || !std::isfinite(value))
      return usage_error(fmt::format("{} must be finite and positive, but is {}", flag, value));
  return check_writable(job.out);
}

// The parts of a batch that the module takes, and only those.
Result<Batch> parts_for(const TorchTrainee& trainee, Batch all, const std::string& path) {
  const auto wanted = trainee.wanted();
  if (wanted.empty()) return all;
  Batch parts;
  for (const std::string& name : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Tensor& t) { return t.name == name; });
    if (found == all.end())
      return bad_input(fmt::format("{}: has no array '{}', which forward(images, tokens) takes", path, name));
    parts.push_back(std::move(*found));
  }
  return parts;
}

// Made-up pairs of the same shapes: floats between 0 and 1, all integers 1.
Batch made_up(const Batch& like, std::size_t rows) {
  Batch batch;
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
Result<bool> dry_run(TorchTrainee& trainee, const Batch& like, const std::vector<double>& parameters) {
  for (const std::size_t rows : {1U, 2U, 5U}) {
    const auto gradient = trainee.gradient(made_up(like, rows), parameters, 1);
    if (!gradient)
      return bad_input(
          fmt::format("{} (on a batch of {} made-up pairs; nothing was charged)", gradient.error().message, rows));
    if (const auto checked = NoisyVector::on_lattice(*gradient, 1); !checked)
      return bad_input(
          fmt::format("{} (on a batch of {} made-up pairs; nothing was charged)", checked.error().message, rows));
  }
  return trainee.changed_buffers();
}

nlohmann::json options_json(const ClipTrainJob& job) {
  nlohmann::json options = {{"sample_rate", job.sample_rate},
                            {"steps", job.steps},
                            {"clip", job.clip},
                            {"optimizer", job.optimizer == Optimizer::kAdam ? "adam" : "sgd"},
                            {"lr", job.lr},
                            {"temperature", job.temperature}};
  return options;
}

// What must be the same when a run is resumed.
nlohmann::json identity_json(const ClipTrainJob& job, std::size_t parameters) {
  nlohmann::json identity = options_json(job);
  identity.update({{"module", job.module},
                   {"loss-module", job.loss_module},
                   {"data", job.data},
                   {"parameters", parameters},
                   {"epsilon", job.privacy.epsilon.value()},
                   {"delta", job.privacy.delta.value()},
                   {"accounting", job.privacy.accounting == Accounting::kTight ? "tight" : "zcdp"},
                   {"dataset", job.privacy.dataset},
                   {"ledger", job.privacy.use_ledger ? job.privacy.ledger : "none"},
                   {"insecure-seed", job.run.insecure_seed ? fmt::to_string(*job.run.insecure_seed) : "none"}});
  return identity;
}

Status same_identity(const nlohmann::json& now, const nlohmann::json& then, const std::string& folder) {
  for (const auto& [key, value] : now.items())
    if (!then.contains(key) || then[key] != value)
      return usage_error(
          fmt::format("--resume: {} is {}, but the run in {} began with {}; give the options it began with", key,
                      value.dump(), folder, then.value(key, nlohmann::json()).dump()));
  return {};
}

Result<CertifiedPlan> plan_of(const ClipTrainJob& job) {
  const PrivacyPlan shape(Adjacency::kAddRemoveOne,
                          {{"noisy gradient", PoissonGaussianEvent{job.sample_rate, 1}, job.steps}});
  return certify(shape, NoisyVector::sensitivity(), job.privacy);
}

Result<CertifiedPlan> stored_plan(const nlohmann::json& run, const ClipTrainJob& job) {
  auto events = events_from_json(run.value("events", nlohmann::json()));
  if (!events) return events.error();
  const auto epsilon = epsilon_of(*events, job.privacy.delta, job.privacy.accounting);
  if (!epsilon) return epsilon.error();
  const auto* event = events->size() == 1 ? std::get_if<PoissonGaussianEvent>(&events->front().mechanism) : nullptr;
  if (event == nullptr || event->q != job.sample_rate || events->front().count != job.steps ||
      *epsilon > job.privacy.epsilon.value())
    return bad_input(fmt::format("{}/run.json: its plan is not that of its options; begin a new run", job.checkpoint));
  return CertifiedPlan{PrivacyPlan(Adjacency::kAddRemoveOne, *std::move(events)), *epsilon};
}

std::string new_id() {
  auto random = SecureRandom::from_kernel();
  const std::uint64_t high = random.next(), low = random.next();
  return fmt::format("{:016x}{:016x}", high, low);
}

// A run as it is before its first step, or before the step it goes on with.
struct Run {
  ChargedWork charge;
  std::optional<RunFolder> folder;
  TrainingState state;
  long long steps() const { return state.descent.steps; }
};

// Charges the plan, once for the run however often it is resumed.
Result<Run> open_run(const ClipTrainJob& job, const Vector& parameters, Observer& observer) {
  const auto identity = identity_json(job, static_cast<std::size_t>(parameters.size()));
  std::optional<RunFolder> folder;
  if (job.resume) {
    auto reopened = RunFolder::reopen(job.checkpoint);
    if (!reopened) return reopened.error();
    EIGENVEIL_TRY(same_identity(identity, reopened->run().value("options", nlohmann::json::object()), job.checkpoint));
    folder.emplace(*std::move(reopened));
  }
  auto certified = folder ? stored_plan(folder->run(), job) : plan_of(job);
  if (!certified) return certified.error();
  EIGENVEIL_TRY(NoisyVector::check(job.clip, static_cast<std::size_t>(parameters.size()), job.steps));

  std::string id = folder ? folder->run().value("id", "") : new_id();
  if (!folder && !job.checkpoint.empty()) {
    // The id is on disk before the charge that bears it.
    auto begun = RunFolder::begin(
        job.checkpoint, {{"id", id}, {"options", identity}, {"events", events_to_json(certified->plan.events)}});
    if (!begun) return begun.error();
    folder.emplace(*std::move(begun));
  }
  TrainingState state{parameters, {}};
  if (job.resume) {
    auto loaded = folder->load();
    if (!loaded) return loaded.error();
    if (*loaded) {
      const bool moments = job.optimizer == Optimizer::kAdam && (*loaded)->descent.steps > 0;
      if ((*loaded)->parameters.size() != parameters.size() ||
          (*loaded)->descent.first.size() != (moments ? parameters.size() : 0))
        return bad_input(fmt::format("{}/checkpoint.npz: is damaged; begin a new run", job.checkpoint));
      state = **std::move(loaded);
    }
  }
  RunOptions running = job.run;
  if (running.insecure_seed)
    *running.insecure_seed += static_cast<std::uint64_t>(state.descent.steps);  // other noise than before
  auto charged = charge_work(*std::move(certified), job.privacy, running, job.data, fmt::format("clip train {}", id),
                             {{{"options", identity.dump()}}}, observer);
  if (!charged) {
    if (!job.resume && folder) folder->discard();
    return charged.error();
  }
  return Run{*std::move(charged), std::move(folder), std::move(state)};
}

// A step failed on private pairs: the run ends, and what it has is kept.
Error stopped(const ClipTrainJob& job, const Run& run, const Error& why) {
  std::string kept = "No --checkpoint was given, so nothing is kept.";
  if (run.folder) {
    const Status saved = run.folder->save(run.state);
    const Status marked = run.folder->stop(fmt::format("step {}: {}", run.steps() + 1, why.message));
    kept = saved && marked ? fmt::format(
                                 "The state after step {} is in {}/checkpoint.npz; that the run stopped there "
                                 "depends on the data in a way that no noise covers.",
                                 run.steps(), job.checkpoint)
                           : (saved ? marked : saved).error().message;
  }
  const std::string spent =
      run.charge.dataset.empty()
          ? "No ledger was charged."
          : fmt::format("The whole plan stays charged to '{}': epsilon {:.6g} at delta {:g}.", run.charge.dataset,
                        run.charge.certified_epsilon, job.privacy.delta.value());
  return {why.code, fmt::format("step {} of {}: {}. The run has stopped. {} {}", run.steps() + 1, job.steps,
                                why.message, spent, kept)};
}

Status train(const ClipTrainJob& job, TorchTrainee& trainee, const Batch& data, Run& run, Observer& observer) {
  const auto sample = PoissonSample::of(job.sample_rate);
  if (!sample) return sample.error();
  const double sigma = std::get<PoissonGaussianEvent>(run.charge.plan.events.front().mechanism).sigma;
  const auto rows = static_cast<std::size_t>(data.front().rows());
  const Descent descent(job.optimizer, job.lr);
  TrainingState& state = run.state;
  TrainingState next;
  const auto count = static_cast<std::size_t>(state.parameters.size());
  std::vector<std::size_t> chosen;
  observer.step("training");
  while (run.steps() < job.steps) {
    sample->draw(rows, run.charge.random, chosen);
    Batch batch;
    for (const Tensor& part : data) batch.push_back(part.take(chosen));
    const Result<std::vector<double>> gradient =
        chosen.empty() ? std::vector<double>(count)  // of no pairs at all
                       : trainee.gradient(batch, {state.parameters.data(), count}, run.charge.random.next());
    if (!gradient) return stopped(job, run, gradient.error());
    const auto noisy = NoisyVector::release(*gradient, job.clip, sigma, run.charge.random);
    if (!noisy) return stopped(job, run, noisy.error());
    next = state;
    descent.step(next.parameters, next.descent, noisy->value().col(0));
    if (!next.parameters.allFinite())
      return stopped(job, run, bad_input("the parameters overflow; lower --lr or --clip"));
    std::swap(state, next);
    // On disk before the next gradient is taken at these parameters.
    if (run.folder && (run.steps() % job.checkpoint_every == 0 || run.steps() == job.steps))
      EIGENVEIL_TRY(run.folder->save(state));
    observer.progress(static_cast<double>(run.steps()) / static_cast<double>(job.steps));
  }
  return {};
}

}  // namespace

Result<nlohmann::json> run_clip_train(const ClipTrainJob& job, Observer& observer) {
  EIGENVEIL_TRY(check_job(job));
  if (const auto sample = PoissonSample::of(job.sample_rate); !sample) return sample.error();
  observer.step("loading the module");
  const auto torch = torch_plugin();
  if (!torch) return torch.error();
  const auto trainee = (*torch)->trainee({job.module, job.loss_module, job.temperature, thread_count(job.run)});
  if (!trainee) return trainee.error();
  const std::vector<double> start = (*trainee)->parameters();

  observer.step("reading pairs");
  auto tensors = read_tensors(job.data);
  if (!tensors) return tensors.error();
  auto data = parts_for(**trainee, *std::move(tensors), job.data);
  if (!data) return data.error();
  observer.step("trying the module on made-up pairs");
  const auto changes_buffers = dry_run(**trainee, *data, start);
  if (!changes_buffers) return changes_buffers.error();

  const Vector parameters = Eigen::Map<const Vector>(start.data(), static_cast<Eigen::Index>(start.size()));
  auto run = open_run(job, parameters, observer);
  if (!run) return run.error();
  EIGENVEIL_TRY(run->charge.work->begin_answering());
  EIGENVEIL_TRY(train(job, **trainee, *data, *run, observer));

  nlohmann::json manifest = common_manifest("clip-train", "batch", options_json(job), job.privacy, run->charge, 0);
  manifest.erase("noisy_rows");  // nothing was released about their number
  manifest["parameters"] = start.size();
  if (*changes_buffers)
    manifest["warnings"].push_back(
        "The module changes its buffers in training (as batch normalisation does). Those changes are not private, and "
        "were thrown away: the buffers are those of the file it began with.");
  observer.step("writing module");
  const auto bytes = (*trainee)->file({run->state.parameters.data(), start.size()}, manifest.dump(1));
  if (!bytes) return bytes.error();
  EIGENVEIL_TRY(write_text_file(job.out, *bytes));
  observer.step("done");
  return manifest;
}

}  // namespace eigenveil
