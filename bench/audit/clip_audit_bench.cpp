// SPDX-License-Identifier: Apache-2.0
// bench_clip_audit [--runs N] [--module FILE.pt]: tries to falsify the epsilon of gradients that are clipped batch by
// batch, with a canary pair that turns them round: bench/audit/audit.hpp. Prints a table, and fails if a lower bound is
// above what we certify, or if the paper's noise keeps what the paper claims. FILE.pt is made by bench/audit/canary.py;
// without it `clip train` is left out.
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "audit.hpp"
#include "eigenveil/torch/module.hpp"

namespace eigenveil::audit {
namespace {

constexpr double kDelta = 1e-5;

struct Setting {
  double epsilon, q;
  std::size_t steps;
};

// What `clip train` asks a step: ordinary pairs of 0.01 and a canary of -1, whose sum is the loss's gradient in the one
// parameter, through the module's own process.
class Train {
 public:
  enum class Terms { kBatch, kEach, kBoth };

  Train(TorchTrainee& trainee, Terms terms, const Setting& setting, Calibration calibration)
      : trainee_(trainee), terms_(terms), steps_(setting.steps), plan_(Adjacency::kAddRemoveOne) {
    const auto add = [&](const char* label) {
      plan_.events.push_back({label, PoissonGaussianEvent{setting.q, 1}, static_cast<long long>(setting.steps)});
    };
    if (terms != Terms::kBatch) add(kEach);
    if (terms != Terms::kEach) add(kBatch);
    plan_ = noisy(plan_, setting.epsilon, kDelta, calibration);
    for (std::size_t i = 0; i <= kPairs; ++i) pairs_.floats.push_back(i < kPairs ? 0.01F : -1.0F);
    pairs_.shape = {kPairs + 1, 1};
  }

  const PrivacyPlan& plan() const { return plan_; }

  double score(bool canary, std::uint64_t seed) {
    const auto paid = reserve_without_ledger(plan_);
    auto oracle = GradientOracle::make(*paid, kPairs + (canary ? 1 : 0), 1, SecureRandom::insecure(seed), 0);
    const std::vector<double> now(1);
    double sum = 0;
    std::size_t event = 0;
    const auto add = [&](double moved) {
      const auto noise = std::get<PoissonGaussianEvent>(plan_.events[event++].mechanism);
      sum += log_ratio(moved, noise.q, noise.sigma);
    };
    for (std::size_t step = 0; step < steps_; ++step) {
      event = 0;
      if (terms_ != Terms::kBatch) {
        // Ordinary pairs are not asked about: they have the gradient 0 there.
        const auto answer = oracle->ask_each(kEach, kClip, 256, [&](const auto& rows, const auto& seeds) {
          return trainee_.gradients({pairs_.take(rows)}, now, seeds, RowsAre::kPrivate);
        });
        if (!answer) return std::nan("");
        add(-answer->value()(0, 0) / kClip);
      }
      if (terms_ != Terms::kEach) {
        const auto answer = oracle->ask(kBatch, kClip, [&](const auto& rows, std::uint64_t s) {
          return trainee_.gradient({pairs_.take(rows)}, now, s, RowsAre::kPrivate);
        });
        if (!answer) return std::nan("");
        add((kClip - answer->value()(0, 0)) / (2 * kClip));
      }
    }
    return sum;
  }

 private:
  static constexpr const char* kEach = "noisy sum of gradients";
  static constexpr const char* kBatch = "noisy gradient";
  static constexpr double kClip = 1e-3;
  static constexpr std::int64_t kPairs = 300;
  TorchTrainee& trainee_;
  Terms terms_;
  std::size_t steps_;
  PrivacyPlan plan_;
  Tensor pairs_{"images", {}, {}, {}, false};
};

bool all_right = true;

void row(const char* what, const Setting& setting, Calibration calibration, const PrivacyPlan& plan, std::size_t runs,
         const std::function<double(bool, std::uint64_t)>& score) {
  const double certified = *epsilon_of(plan.events, *Delta::of(kDelta));
  const double found = epsilon_below(run(runs, score), kDelta);
  const bool paper = calibration == Calibration::kPaper;
  const bool right = found <= certified && (!paper || found > setting.epsilon);
  all_right = all_right && right;
  fmt::print("| {} | {} | {:g} | {} | {:g} | {:.3g} | {} | {:.2f} |{}\n", what, paper ? "paper" : "ours", setting.q,
             setting.steps, setting.epsilon, certified, 2 * runs, found, right ? "" : " FAILED");
  std::fflush(stdout);
}

int audit(std::size_t runs, const std::string& module) {
  fmt::print(
      "| what | noise | q | steps | epsilon asked for | certified | runs | epsilon is at least |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Setting& setting : {Setting{1, 0.02, 100}, Setting{3, 0.02, 100}})
    for (const auto calibration : {Calibration::kTight, Calibration::kPaper}) {
      const BatchFit fit(setting.q, setting.steps, setting.epsilon, kDelta, calibration, 400);
      row("`clip fit --method batch`", setting, calibration, fit.plan(), runs,
          [&](bool canary, std::uint64_t seed) { return fit.score(canary, seed); });
    }
  if (module.empty()) return all_right ? 0 : 1;
  const auto file = ModuleFile::read(module);
  if (!file) return fmt::print(stderr, "{}\n", file.error().message), 2;
  for (const auto terms : {Train::Terms::kBatch, Train::Terms::kEach, Train::Terms::kBoth}) {
    TorchTraineeOptions options{*file};
    options.batch = terms != Train::Terms::kEach;
    options.each = terms != Train::Terms::kBatch;
    const auto trainee = torch_trainee(options);
    if (!trainee) return fmt::print(stderr, "{}\n", trainee.error().message), 2;
    const char* what = terms == Train::Terms::kBatch  ? "`clip train`, batch_loss"
                       : terms == Train::Terms::kEach ? "`clip train`, sample_loss"
                                                      : "`clip train`, both";
    for (const auto calibration : {Calibration::kTight, Calibration::kPaper}) {
      if (calibration == Calibration::kPaper && terms != Train::Terms::kBatch) continue;
      const Setting setting{3, 0.02, 100};
      Train train(**trainee, terms, setting, calibration);
      row(what, setting, calibration, train.plan(), calibration == Calibration::kPaper ? runs / 4 : runs / 20,
          [&](bool canary, std::uint64_t seed) { return train.score(canary, seed); });
    }
  }
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace eigenveil::audit

int main(int count, char** words) {
  std::size_t runs = 20'000;
  std::string module;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--runs") == 0) runs = std::strtoull(words[i + 1], nullptr, 10);
    if (std::strcmp(words[i], "--module") == 0) module = words[i + 1];
  }
  return eigenveil::audit::audit(std::max<std::size_t>(runs, 100), module);
}
