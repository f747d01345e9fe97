// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/job/clip.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "options.hpp"
#include "overwriting.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist";
constexpr const char* kFashionNames =
    "t-shirt\ntrouser\npullover\ndress\ncoat\nsandal\nshirt\nsneaker\nbag\nankle boot\n";

struct ClipDemoFlags {
  std::string data = kFashion;
  std::string folder = "eigenveil-demo-clip";
  std::vector<double> epsilons = {0.25, 0.5, 1, 3, 10};
  bool json = false;
  bool quiet = false;
  bool force = false;
};

std::string demo_ledger(const ClipDemoFlags& flags) { return flags.folder + "/ledger.db"; }

Result<std::vector<ClipJob>> demo_clip_jobs(const ClipDemoFlags& flags, const PairFiles& pairs) {
  std::vector<ClipJob> jobs;
  for (const double value : flags.epsilons) {
    const auto epsilon = EIGENVEIL_TRY(Epsilon::of(value));
    ClipJob job{.fit = {.rows = {},
                        .privacy = {.epsilon = epsilon, .delta = *Delta::of(0.5)},
                        .run = {},
                        .out = {},
                        .report = {}},
                .pairs = pairs};
    job.fit.privacy.auto_delta = true;
    job.basis = 500;  // one encoding for all of them
    job.fit.privacy.ledger = demo_ledger(flags);
    job.fit.out = fmt::format("{}/model-{:g}.npz", flags.folder, value);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

int run_clip_demo(const ClipDemoFlags& flags) {
  if (!std::filesystem::exists(flags.data + "/train-images-idx3-ubyte.gz"))
    return fail(
        bad_input(fmt::format("{}/train-images-idx3-ubyte.gz is missing; install it with: apt-get install "
                              "dataset-fashion-mnist",
                              flags.data)));
  std::error_code failure;
  std::filesystem::create_directories(flags.folder, failure);
  if (failure) return fail(usage_error(fmt::format("cannot make the folder {}: {}", flags.folder, failure.message())));
  if (const auto made = Ledger::open(demo_ledger(flags)); !made) return fail(made.error());
  PairFiles train;
  train.images = flags.data + "/train-images-idx3-ubyte.gz";
  train.labels = flags.data + "/train-labels-idx1-ubyte.gz";
  train.class_names = flags.folder + "/class-names.txt";
  PairFiles test = train;
  test.images = flags.data + "/t10k-images-idx3-ubyte.gz";
  test.labels = flags.data + "/t10k-labels-idx1-ubyte.gz";
  const auto jobs = demo_clip_jobs(flags, train);
  if (!jobs) return fail(jobs.error());
  std::vector<FileUse> models;
  for (const ClipJob& job : *jobs) models.push_back({"the demonstration's", *job.fit.out});
  if (const Status fresh = flags.force ? Status() : check_new(models); !fresh) return fail(fresh.error());
  if (const auto written = write_file(train.class_names, kFashionNames); !written) return fail(written.error());
  if (!flags.quiet)
    complain(
        "Private zero-shot classifiers of Fashion-MNIST from prompted class names, delta = rows^-1.1. One by "
        "hand:\n  eigenveil clip fit --images {} \\\n      --labels {} --class-names {} --epsilon 1 --delta auto\n\n",
        train.images, train.labels, train.class_names);
  nlohmann::json results = nlohmann::json::array();
  const Status done = [&] {
    Terminal terminal(flags.quiet, Bearings::of(jobs->front().fit.privacy));
    return release_series(*jobs, terminal, [&](const ClipJob& job, const Release& outcome) -> Status {
      const auto metrics = EIGENVEIL_TRY(evaluate_clip(outcome.model, {}, test, false, job.fit.run, terminal));
      results.push_back(
          {{"epsilon", job.fit.privacy.epsilon.value()}, {"accuracy", *metrics.accuracy}, {"model", *job.fit.out}});
      return {};
    });
  }();
  if (!done) return fail(done.error());
  if (flags.json) {
    say_json({{"zero_shot", results}, {"test_pairs", "public"}});
    return 0;
  }
  tell("\nepsilon   zero-shot accuracy on 10,000 public test images\n");
  for (const auto& result : results)
    tell("{:7g}   {:.2f}%\n", result["epsilon"].get<double>(), 100 * result["accuracy"].get<double>());
  tell("\nEach row is a release of its own; together they cost more: eigenveil ledger list --ledger {}\n",
       jobs->front().fit.privacy.ledger);
  return 0;
}

}  // namespace

Command demo_clip_command(CLI::App& demo) {
  auto* app = demo.add_subcommand("clip", "Private zero-shot classifiers against epsilon");
  auto flags = std::make_shared<ClipDemoFlags>();
  app->add_option("--data", flags->data, "Folder of Fashion-MNIST")->capture_default_str();
  app->add_option("--folder", flags->folder, "Where to write models and ledger")->capture_default_str();
  app->add_option("--epsilons", flags->epsilons, "Budgets to show")->delimiter(',')->capture_default_str();
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->add_flag("--force", flags->force, kForceHelp);
  app->footer("\nExample:\n  eigenveil demo clip --epsilons 1,3");
  return {app, [flags] { return run_clip_demo(*flags); }};
}

}  // namespace eigenveil::app
