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
  std::string schedule = "constant";
  std::optional<double> weight_decay;
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
  job.descent.optimizer = flags.optimizer == "adam"    ? Optimizer::kAdam
                          : flags.optimizer == "adamw" ? Optimizer::kAdamW
                                                       : Optimizer::kSgd;
  if (flags.weight_decay && flags.optimizer != "adamw")
    return fail(usage_error("--weight-decay is AdamW's: use it with --optimizer adamw"));
  job.descent.decay = flags.optimizer == "adamw" ? flags.weight_decay.value_or(0.01) : 0;
  job.descent.cosine = flags.schedule == "cosine" ? job.steps : 0;
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

void add_module_flags(CLI::App& app, ClipTrainJob& job) {
  app.add_option(
         "--module", job.module,
         "TorchScript: sample_loss(batch: Dict[str, Tensor]) -> Tensor of one pair, or batch_loss of the same kind or "
         "forward(images, tokens) -> (Tensor, Tensor) of a batch, or both")
      ->required()
      ->group("Module");
  app.add_option("--loss-module", job.loss_module,
                 "TorchScript, not trained: forward(image_embeddings, text_embeddings) -> Tensor; default: InfoNCE")
      ->group("Module");
  app.add_option("--temperature", job.temperature, "Of InfoNCE")->capture_default_str()->group("Module");
  app.add_option("--train", job.train,
                 "Train the parameters whose names this regular expression is found in, as 'lora_' or 'bias$'; "
                 "default: those with requires_grad")
      ->group("Module");
  app.add_option("--module-seconds", job.module_seconds, "That the module may take for one batch before it is killed")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group("Module");
}

void add_gradient_flags(CLI::App& app, ClipTrainJob& job) {
  app.add_option("--sample-rate", job.sample_rate, "Probability of a pair (or person) to be in the batch of a step")
      ->required()
      ->group("Training");
  app.add_option("--steps", job.steps, "Steps to take")->required()->group("Training");
  app.add_option("--sample-clip", job.sample_clip,
                 "Train sample_loss: the gradient of each pair is scaled down to this length, and noised for it")
      ->group("Training");
  app.add_option("--clip", job.clip,
                 "Train the loss of a batch: its gradient is scaled down to this length, and noised for twice that")
      ->group("Training");
  app.add_option("--batch-rate", job.batch_rate, "As --sample-rate, for the loss of a batch where both are trained")
      ->group("Training");
  app.add_option("--sample-share", job.sample_share, "Of the plan, for sample_loss where both are trained")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--sample-weight", job.sample_weight,
                 "Multiplies the sum of the pairs' gradients before it is added to the batch's")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--microbatch", job.microbatch, "Pairs of a batch that are in memory at a time; default: all")
      ->check(from_one())
      ->group("Training");
}

void add_descent_flags(CLI::App& app, ClipTrainFlags& flags) {
  DescentOptions& descent = flags.job.descent;
  app.add_option("--optimizer", flags.optimizer, "sgd, adam or adamw")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->capture_default_str()
      ->group("Training");
  app.add_option("--lr", descent.rate, "Learning rate")->capture_default_str()->group("Training");
  app.add_option("--beta1", descent.beta1, "Of Adam's mean of gradients")->capture_default_str()->group("Training");
  app.add_option("--beta2", descent.beta2, "Of Adam's mean of their squares")->capture_default_str()->group("Training");
  app.add_option("--adam-eps", descent.adam_eps, "That Adam adds to the root of it")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--weight-decay", flags.weight_decay, "Of AdamW; default 0.01")->group("Training");
  app.add_option("--warmup", descent.warmup, "Steps in which the learning rate grows to its full size")
      ->capture_default_str()
      ->group("Training");
  app.add_option("--schedule", flags.schedule, "Of the learning rate after that: constant, or cosine, down to 0")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str()
      ->group("Training");
}

}  // namespace

Command clip_train_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("train", "Train a TorchScript module on private pairs, end to end");
  auto flags = std::make_shared<ClipTrainFlags>();
  ClipTrainJob& job = flags->job;
  add_module_flags(*app, job);
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
  app->add_option("--public", job.public_pairs,
                  "Public pairs, an NPZ file of the same arrays: the loss on them is told")
      ->group("Pairs");
  app->add_option("--public-every", job.public_every, "Steps between two of these losses")
      ->capture_default_str()
      ->group("Pairs");
  add_gradient_flags(*app, job);
  add_descent_flags(*app, *flags);
  app->add_option("--checkpoint", job.checkpoint, "Folder that keeps the state of the run")->group("Training");
  app->add_option("--checkpoint-every", job.checkpoint_every, "Steps between two checkpoints")
      ->capture_default_str()
      ->group("Training");
  app->add_flag("--resume", job.resume, "Go on with the run in the folder, with the same options; it is charged once")
      ->group("Training");
  flags->privacy.add_to(*app);
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
