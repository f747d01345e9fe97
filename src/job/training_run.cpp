// SPDX-License-Identifier: Apache-2.0
#include "training_run.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/base/figures.hpp"
#include "eigenveil/papers/noise.hpp"
#include "eigenveil/privacy/noisy_vector.hpp"

namespace eigenveil {
namespace {

// What must be the same when a run is resumed.
nlohmann::json identity_json(const ClipTrainJob& job, const std::map<std::string, std::string>& files,
                             Eigen::Index parameters) {
  nlohmann::json identity = training_options_json(job);
  identity.update({{"parameters", parameters},
                   {"epsilon", job.privacy.epsilon.value()},
                   {"delta", job.privacy.delta.value()},
                   {"accounting", job.privacy.accounting == Accounting::kTight ? "tight" : "zcdp"},
                   {"insecure-seed", job.run.insecure_seed ? fmt::to_string(*job.run.insecure_seed) : "none"}});
  if (job.privacy.calibration == Calibration::kPaper) identity["calibration"] = "paper";
  for (const auto& [name, hash] : files) identity[name + " file"] = hash;
  return identity;
}

// In words, and before the ledger is asked, which would take another fact for a second run on the same charge.
Status same_identity(const nlohmann::json& now, const nlohmann::json& then, const std::string& folder) {
  for (const auto& [key, value] : now.items()) {
    if (then.contains(key) && then[key] == value) continue;
    if (key.ends_with(" file"))
      return usage_error(fmt::format(
          "`resume`: the {} is not the one that the run in {} began with: its contents have changed, or it is "
          "another file. Give the one it began with, or begin a new run",
          key, folder));
    return usage_error(
        fmt::format("`resume`: {} is {}, but the run in {} began with {}; give the options it began with", key,
                    value.dump(), folder, then.value(key, nlohmann::json()).dump()));
  }
  for (const auto& [key, value] : then.items())
    if (!now.contains(key))
      return usage_error(fmt::format("`resume`: the run in {} began with {} {}; give the options it began with", folder,
                                     key, value.dump()));
  return {};
}

// Noise in units of each term's own sensitivity: a share of the plan is one of 1 / sigma^2.
Result<CertifiedPlan> new_plan(const ClipTrainJob& job) {
  PrivacyPlan draft{Adjacency::kAddRemoveOne};
  const bool both = job.clip && job.sample_clip;
  if (job.sample_clip) {
    const auto rate = EIGENVEIL_TRY(SampleRate::of(job.sample_rate));
    const double weight = both ? 1 / std::sqrt(job.sample_share) : 1.0;
    draft.events.push_back({kNoisySum, PoissonGaussianEvent{rate, weight}, job.steps});
  }
  if (job.clip) {
    const auto rate = EIGENVEIL_TRY(SampleRate::of(job.batch_rate.value_or(job.sample_rate)));
    const double weight = both ? 1 / std::sqrt(1 - job.sample_share) : 1.0;
    draft.events.push_back({kNoisyGradient, PoissonGaussianEvent{rate, weight}, job.steps});
  }
  if (job.person) draft.person = job.person->column;
  if (job.privacy.calibration == Calibration::kPaper) {
    draft = EIGENVEIL_TRY(papers::batch(draft, job.privacy.epsilon, job.privacy.delta, job.privacy.accounting));
  }
  return certify(draft, NoisyVector::sensitivity(), job.privacy);
}

std::string new_id() {
  auto random = SecureRandom::from_kernel();
  const std::uint64_t high = random.next(), low = random.next();
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string key_of(const std::string& id) { return fmt::format("clip train {}", id); }

// A run that began before, as the ledger knows it.
struct Earlier {
  RunFolder folder;
  WorkRecord record;
};

Result<Earlier> find_earlier(const ClipTrainJob& job, const nlohmann::json& identity) {
  auto folder = EIGENVEIL_TRY(RunFolder::reopen(job.checkpoint));
  const auto& run = folder.run();
  if (!run.contains("id") || !run["id"].is_string() || !run.contains("options") || !run["options"].is_object())
    return bad_input(fmt::format("{}/run.json: is damaged; begin a new run in another folder", job.checkpoint));
  EIGENVEIL_TRY(same_identity(identity, run["options"], job.checkpoint));
  auto ledger = EIGENVEIL_TRY(ledger_of(job.privacy));
  auto record = EIGENVEIL_TRY(ledger.find_work(key_of(run["id"])));
  if (!record)
    return usage_error(
        fmt::format("`resume`: the ledger knows nothing of the run in {}: it was charged to another ledger, or never. "
                    "Name its ledger with `ledger`, or begin a new run",
                    job.checkpoint));
  return Earlier{std::move(folder), *std::move(record)};
}

}  // namespace

nlohmann::json training_options_json(const ClipTrainJob& job) {
  const DescentOptions& descent = job.descent;
  const bool adam = descent.optimizer != Optimizer::kSgd;
  nlohmann::json options = {{"sample_rate", job.sample_rate},
                            {"steps", job.steps},
                            {"optimizer", descent.optimizer == Optimizer::kAdam    ? "adam"
                                          : descent.optimizer == Optimizer::kAdamW ? "adamw"
                                                                                   : "sgd"},
                            {"lr", descent.rate},
                            {"temperature", job.temperature}};
  const auto say = [&](const char* name, const auto& value, bool said) {
    if (said) options[name] = value;
  };
  const DescentOptions usual;
  say("clip", job.clip.value_or(0), job.clip.has_value());
  say("sample_clip", job.sample_clip.value_or(0), job.sample_clip.has_value());
  say("batch_rate", job.batch_rate.value_or(0), job.batch_rate.has_value());
  say("sample_share", job.sample_share, job.clip && job.sample_clip);
  say("sample_weight", job.sample_weight, job.sample_weight != 1);
  say("beta1", descent.beta1, adam && descent.beta1 != usual.beta1);
  say("beta2", descent.beta2, adam && descent.beta2 != usual.beta2);
  say("adam_eps", descent.adam_eps, adam && descent.adam_eps != usual.adam_eps);
  say("weight_decay", descent.decay, descent.optimizer == Optimizer::kAdamW);
  say("warmup", descent.warmup, descent.warmup > 0);
  say("schedule", "cosine", descent.cosine > 0);
  say("train", job.train, !job.train.empty());
  say("microbatch", job.microbatch, job.microbatch > 0);
  if (job.person) {
    options["person"] = job.person->column;
    options["person_weight"] = weight_in_words(*job.person);
  }
  return options;
}

Result<TrainingRun> TrainingRun::open(const ClipTrainJob& job, const std::map<std::string, std::string>& files,
                                      const Vector& parameters, Observer& observer) {
  const auto identity = identity_json(job, files, parameters.size());
  std::optional<Earlier> earlier;
  if (job.resume) {
    auto found = EIGENVEIL_TRY(find_earlier(job, identity));
    earlier.emplace(std::move(found));
  }
  auto certified = EIGENVEIL_TRY(earlier ? Result(CertifiedPlan{earlier->record.plan, 0}) : new_plan(job));
  if (earlier) {
    const auto epsilon = EIGENVEIL_TRY(epsilon_of(certified.plan.events, job.privacy.delta, job.privacy.accounting));
    certified.epsilon = epsilon;
  }
  const std::size_t entries = parameters.size();
  for (const auto& clip : {job.clip, job.sample_clip})
    if (clip) EIGENVEIL_TRY(NoisyVector::check(*clip, entries, job.steps * (job.clip && job.sample_clip ? 2 : 1)));

  std::optional<RunFolder> folder;
  std::string id = new_id();
  if (earlier) {
    folder.emplace(std::move(earlier->folder));
    id = folder->run()["id"];
  } else if (!job.checkpoint.empty()) {
    auto begun = EIGENVEIL_TRY(RunFolder::begin(job.checkpoint, {{"id", id}, {"options", identity}}));
    folder.emplace(std::move(begun));
  }
  WorkFacts facts;
  facts.pinned["options"] = identity.dump();
  auto charged = charge_work(std::move(certified), job.privacy, job.run, job.data, key_of(id), facts, observer);
  if (!charged) {
    if (!earlier && folder) folder->discard();
    return charged.error();
  }
  TrainingRun run(*std::move(charged), std::move(folder), {parameters, {}});
  // Before its first checkpoint nothing of a run was ever on disk: it begins anew.
  if (const auto& record = run.charge_.work->record(); earlier && record.step > 0) {
    run.state_ = EIGENVEIL_TRY(run.folder_->load(record.head));
  }
  return run;
}

SecureRandom TrainingRun::take_random(const ClipTrainJob& job) {
  if (!job.run.insecure_seed) return std::move(charge_.random);
  return SecureRandom::insecure(*job.run.insecure_seed + static_cast<std::uint64_t>(steps()));  // not as before
}

Status TrainingRun::checkpoint() {
  if (!folder_) return {};
  const auto key = EIGENVEIL_TRY(folder_->save(state_));
  return charge_.work->advance(charge_.work->record().step + 1, key);
}

Error TrainingRun::stop(const ClipTrainJob& job, const Error& why) {
  const Status ended = charge_.work->close(WorkState::kEnded);
  std::string kept = "No `checkpoint` was given, so nothing is kept.";
  if (folder_ && !ended) {
    // The ledger lets the run go on from its last checkpoint: with a state from beyond that, steps after it would be
    // released twice.
    kept = "Nothing is kept, since the ledger could not be told that the run has ended: " + ended.error().message;
  } else if (folder_) {
    const Status saved = folder_->keep(state_);
    kept = saved ? fmt::format(
                       "The state after step {} is in {}/state.npz; that the run stopped there depends on the data in "
                       "a way that no noise covers.",
                       steps(), job.checkpoint)
                 : saved.error().message;
  }
  const std::string spent =
      charge_.dataset.empty()
          ? "No ledger was charged."
          : fmt::format("The whole plan stays charged to '{}': epsilon {:.6g} at delta {}.", charge_.dataset,
                        charge_.certified_epsilon, plain(job.privacy.delta.value()));
  return {why.code, fmt::format("step {} of {}: {}. The run has stopped. {} {}", steps() + 1, job.steps, why.message,
                                spent, kept)};
}

}  // namespace eigenveil
