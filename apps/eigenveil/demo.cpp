// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "eigenveil/ledger/ledger.hpp"
#include "options.hpp"
#include "overwriting.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

constexpr const char* kImages = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";

int run(const std::string& images, const std::string& folder, const OutputFlags& output) {
  if (!std::filesystem::exists(images))
    return fail(
        bad_input(fmt::format("{} is missing; install it with: apt-get install dataset-fashion-mnist", images)));
  const std::string model = folder + "/model.npz", report = folder + "/report.html";
  if (!output.force)
    if (const Status fresh = check_new({{"the demonstration's", model}, {"the demonstration's", report}}); !fresh)
      return fail(fresh.error());
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return fail(usage_error(fmt::format("cannot make the folder {}: {}", folder, failure.message())));

  PcaJob job{.fit = {.rows = {},
                     .privacy = {.epsilon = *Epsilon::of(1), .delta = *Delta::of(1e-6)},
                     .run = {},
                     .out = model,
                     .report = report,
                     .report_options = {ReportOptions::ImageShape{28, 28}}},
             .components = 10};
  job.fit.rows.data = images;
  job.fit.rows.ranges = {"0:255"};
  job.fit.rows.center = Center::kPrivate;
  job.fit.rows.row_bound = *RowBound::of(20);
  job.fit.privacy.ledger = folder + "/ledger.db";
  if (const auto made = Ledger::open(job.fit.privacy.ledger); !made) return fail(made.error());
  if (!output.quiet)
    complain(
        "Private PCA of Fashion-MNIST (60,000 images of 28x28 pixels) at epsilon 1, delta 1e-6. The same by hand:\n"
        "  eigenveil pca {} \\\n      --range 0:255 --center private --row-bound 20 --components 10 --epsilon 1 "
        "--delta 1e-6 \\\n      --image-shape 28x28 --out {} --report {} --ledger {}\n\n",
        images, *job.fit.out, job.fit.report, job.fit.privacy.ledger);
  OutputFlags shown = output;
  shown.out = *job.fit.out;
  shown.report = job.fit.report;
  return show_release(released(study(std::move(job)), output), shown);
}

}  // namespace

std::vector<Command> demo_commands(CLI::App& program) {
  auto* app = program.add_subcommand("demo", "Private PCA of Fashion-MNIST, with a report");
  struct Flags {
    std::string images = kImages;
    std::string folder = "eigenveil-demo";
    OutputFlags output;
  };
  auto flags = std::make_shared<Flags>();
  app->add_option("--images", flags->images, "Where the images are")->capture_default_str();
  app->add_option("--folder", flags->folder, "Where to write model, report and ledger")->capture_default_str();
  app->add_flag("--json", flags->output.json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->output.quiet, "No progress on stderr");
  app->add_flag("--force", flags->output.force, kForceHelp);
  app->footer("\nExample:\n  eigenveil demo --folder tour");
  // Whoever names a demonstration means that one; alone, `demo` is the first.
  return {demo_federation_command(*app),
          demo_clip_command(*app),
          {app, [flags] { return run(flags->images, flags->folder, flags->output); }}};
}

}  // namespace eigenveil::app
