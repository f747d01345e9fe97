// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/clip_train.hpp"

#include <fmt/format.h>

#include "flags.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct ClipTrainFlags {
  ClipTrainJob job{.privacy = {*Epsilon::of(1), *Delta::of(0.5)}, .out = "trained.pt"};
  std::string optimizer = "adam";
  PersonFlags person;
  PrivacyFlags privacy{.adjacency = "add-remove-one"};
  RunFlags run;
  std::optional<std::size_t> expected_rows;
  bool json = false;
  bool quiet = false;
};

int run_clip_train(const ClipTrainFlags& flags) {
  ClipTrainJob job = flags.job;
  const auto privacy = flags.privacy.options(flags.expected_rows);
  if (!privacy) return fail(privacy.error());
  if (privacy->auto_delta)
    return fail(usage_error(
        "--delta auto tells the number of pairs, which add-remove-one hides: give a number, or --expected-rows N"));
  const auto run = flags.run.options();
  if (!run) return fail(run.error());
  job.privacy = *privacy;
  job.run = *run;
  const auto person = flags.person.options();
  if (!person) return fail(person.error());
  job.person = *person;
  job.optimizer = flags.optimizer == "adam" ? Optimizer::kAdam : Optimizer::kSgd;
  Bearings bearings = Bearings::of(job.privacy);
  if (!job.checkpoint.empty())
    bearings.again = fmt::format(
        "The run is charged once, and stays charged: the same command with --resume goes on from its last checkpoint "
        "in "
        "{}, or from the beginning if there is none yet.",
        job.checkpoint);
  const auto manifest = [&] {
    Terminal terminal(flags.quiet, bearings);
    return eigenveil::run_clip_train(job, terminal);
  }();
  if (!manifest) return fail(manifest.error());
  if (flags.json) {
    nlohmann::json object = *manifest;
    object["module"] = job.out;
    say_json(object);
    return 0;
  }
  tell("Trained {} parameters in {} steps.\n\nGuarantee. {}\n\n",
       with_commas((*manifest)["parameters"].get<std::size_t>()), job.steps,
       (*manifest)["guarantee"].get<std::string>());
  for (const auto& warning : (*manifest)["warnings"]) tell("Note. {}\n\n", with_flags(warning.get<std::string>()));
  tell("Module: {}\n", job.out);
  return 0;
}

}  // namespace

Command clip_train_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("train", "Train a TorchScript module on private pairs, end to end");
  auto flags = std::make_shared<ClipTrainFlags>();
  ClipTrainJob& job = flags->job;
  app->add_option(
         "--module", job.module,
         "TorchScript: forward(images, tokens) -> (Tensor, Tensor), or loss(batch: Dict[str, Tensor]) -> Tensor")
      ->required()
      ->group("Module");
  app->add_option("--loss-module", job.loss_module,
                  "TorchScript, not trained: forward(image_embeddings, text_embeddings) -> Tensor; default: InfoNCE")
      ->group("Module");
  app->add_option("--temperature", job.temperature, "Of InfoNCE")->capture_default_str()->group("Module");
  app->add_option("--module-seconds", job.module_seconds, "That the module may take for one batch before it is killed")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group("Module");
  app->add_option("--data", job.data, "Private pairs: an NPZ file of arrays with the same number of rows")
      ->required()
      ->group("Pairs");
  flags->person.add_to(*app);
  app->get_option("--person")
      ->description(
          "Array of integers among them that says whose a pair is: what is protected is then a person, with all their "
          "pairs; a batch has people, each with one of their pairs");
  // Every integer is an id, and of a person a step takes one pair.
  for (const char* other : {"--missing-person", "--max-rows-per-person"}) app->remove_option(app->get_option(other));
  app->add_option("--sample-rate", job.sample_rate, "Probability of a pair (or person) to be in the batch of a step")
      ->required()
      ->group("Training");
  app->add_option("--steps", job.steps, "Noisy gradients to take")->required()->group("Training");
  app->add_option("--clip", job.clip, "The gradient of a batch is scaled down to this length")
      ->required()
      ->group("Training");
  app->add_option("--optimizer", flags->optimizer, "sgd or adam")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str()
      ->group("Training");
  app->add_option("--lr", job.lr, "Learning rate")->capture_default_str()->group("Training");
  app->add_option("--checkpoint", job.checkpoint, "Folder that keeps the state of the run")->group("Training");
  app->add_option("--checkpoint-every", job.checkpoint_every, "Steps between two checkpoints")
      ->capture_default_str()
      ->group("Training");
  app->add_flag("--resume", job.resume, "Go on with the run in the folder, with the same options; it is charged once")
      ->group("Training");
  flags->privacy.add_to(*app);
  app->remove_option(app->get_option("--calibration"));
  app->add_option("--expected-rows", flags->expected_rows, "With --delta auto: a public guess of the number of pairs")
      ->check(from_one())
      ->group("Privacy");
  flags->run.add_to(*app);
  app->add_option("--out", job.out, "Trained module to write")->capture_default_str()->group("Output");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there")->group("Output");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr")->group("Output");
  app->footer(
      "\nExample:\n  eigenveil clip train --module public.pt --data pairs.npz --epsilon 3 --delta 1e-6 --sample-rate "
      "0.01 "
      "--steps 1000 --clip 1 --lr 0.001 --checkpoint run\n"
      "  the same with --resume, should it be cut off");
  return {app, [flags] { return run_clip_train(*flags); }};
}

}  // namespace eigenveil::app
