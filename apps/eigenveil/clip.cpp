// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/clip.hpp"

#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

constexpr const char* kImagesHelp =
    "Images: IDX, IDX.gz, NPY (a flat image per row) or a folder of such; or a folder of PNG and JPEG files of one "
    "size, "
    "in the order of their names (by bytes: 10.png before 9.png)";

struct ClipPairFlags {
  PairFiles files;
  void add_to(CLI::App& app) {
    app.add_option("--x", files.x, "Vectors of the first view: NPY, CSV, ...")->group("Pairs");
    app.add_option("--y", files.y, "Vectors of the second view, row by row those of the same pairs")->group("Pairs");
    app.add_option("--images", files.images, kImagesHelp)->group("Pairs");
    app.add_option("--captions", files.captions, "Texts of the images, one per line, in the images' order")
        ->group("Pairs");
    app.add_option("--labels", files.labels, "Instead of captions: the images' classes, as numbers from 0")
        ->group("Pairs");
    app.add_option("--class-names", files.class_names, "Public names of the classes, one per line")->group("Pairs");
    app.add_option("--prompts", files.prompts, "Public sentences with {} for a class, one per line; default: a few")
        ->group("Pairs");
  }
};

CLI::Option* add_kept_option(CLI::App& app, std::string& kept) {
  return app.add_option("--keep-embeddings", kept,
                        "Folder in which what encoders with weights gave is kept, and found again by the next command. "
                        "As private as the rows: its files are yours alone");
}

void warn_of_kept(const std::string& folder, bool quiet) {
  if (folder.empty() || quiet) return;
  complain("eigenveil: {} keeps the embeddings of these rows: as private as the rows, NOT to be given away\n", folder);
}

struct ClipFitFlags {
  ClipPairFlags pairs;
  std::string image_encoder = "scatter";
  std::string text_encoder = "hash";
  std::vector<double> pixel_range = {0, 255};
  std::optional<std::size_t> channels;
  std::string kept;
  std::string method = "auto";
  std::string objective;
  std::optional<std::size_t> dim;
  double temperature = 1;
  std::optional<double> clip;
  std::optional<double> sample_rate;
  std::optional<std::size_t> steps;
  std::optional<std::string> optimizer;
  std::optional<double> rate;
  std::string start = "random";
  std::string delta;
  std::string missing = "error";
  PersonFlags person;
  PrivacyFlags privacy;
  RunFlags run;
  OutputFlags output;
};

Result<EncoderChoices> clip_encoders(const ClipFitFlags& flags) {
  EncoderChoices choices{.image_encoder = flags.image_encoder,
                         .text_encoder = flags.text_encoder,
                         .channels = flags.channels,
                         .lower = flags.pixel_range[0],
                         .upper = flags.pixel_range[1],
                         .kept = flags.kept};
  const auto shape = EIGENVEIL_TRY(flags.output.report_options());
  if (shape.image_shape) choices.image_shape = {shape.image_shape->height, shape.image_shape->width};
  return choices;
}

// What was given; the rest as the library has it.
std::optional<ClipTraining> clip_training(const ClipFitFlags& flags) {
  ClipTraining training;
  if (flags.optimizer) training.optimizer = *flags.optimizer == "adam" ? Optimizer::kAdam : Optimizer::kSgd;
  training.clip = flags.clip.value_or(training.clip);
  training.sample_rate = flags.sample_rate.value_or(training.sample_rate);
  training.steps = flags.steps.value_or(training.steps);
  training.rate = flags.rate.value_or(default_rate(training.optimizer));
  const bool given = flags.clip || flags.sample_rate || flags.steps || flags.optimizer || flags.rate;
  return given ? std::optional(training) : std::nullopt;
}

Result<ClipJob> clip_job(const ClipFitFlags& flags) {
  PrivacyFlags spending = flags.privacy;
  spending.delta = flags.delta;
  // Batches are sampled: what is hidden is one pair more or less.
  if (spending.adjacency.empty())
    spending.adjacency = flags.method == "batch" || flags.method == "pair" ? "add-remove-one" : "replace-one";
  auto privacy = EIGENVEIL_TRY(spending.options());
  auto run = EIGENVEIL_TRY(flags.run.options());
  auto encoders = EIGENVEIL_TRY(clip_encoders(flags));
  ClipJob job{.fit = {.rows = {},
                      .privacy = std::move(privacy),
                      .run = std::move(run),
                      .out = flags.output.out,
                      .report = flags.output.report},
              .pairs = flags.pairs.files,
              .encoders = std::move(encoders)};
  job.fit.rows.missing = missing_policy(flags.missing);
  if (const auto person = EIGENVEIL_TRY(flags.person.options())) name_people(job, *person);
  for (const ClipMethod method :
       {ClipMethod::kCross, ClipMethod::kWhitened, ClipMethod::kPrompt, ClipMethod::kBatch, ClipMethod::kPair})
    if (flags.method == name(method)) job.method = method;
  job.training = clip_training(flags);
  if (flags.start != "random") job.start = flags.start == "cross" ? ClipMethod::kCross : ClipMethod::kWhitened;
  if (!flags.objective.empty()) job.objective = flags.objective;
  job.dim = flags.dim;
  job.temperature = flags.temperature;
  return job;
}

Result<Study> study_from(const ClipFitFlags& flags) {
  auto job = EIGENVEIL_TRY(clip_job(flags));
  return study(std::move(job));
}

int run_clip_fit(const ClipFitFlags& flags) {
  const auto outcome = released(study_from(flags), flags.output);
  if (!outcome) return fail(outcome.error());
  warn_of_kept(flags.kept, flags.output.quiet);
  return show_release(outcome, flags.output);
}

void add_encoder_flags(CLI::App& app, ClipFitFlags& flags) {
  app.add_option("--image-encoder", flags.image_encoder,
                 "Public: scatter (wavelets, no weights), pixels, efficientnet-lite0 ('eigenveil clip encoders' tells "
                 "more), or torchscript:FILE, a module called with one image at a time; some joined by +: side by side")
      ->capture_default_str()
      ->group("Encoders");
  app.add_option("--text-encoder", flags.text_encoder,
                 "Public: hash (no weights), minilm ('eigenveil clip encoders' tells more), vectors:FILE of word "
                 "vectors (text, or FILE.npy with the words in FILE.txt), or torchscript:FILE, a module called with "
                 "the bytes of a text")
      ->capture_default_str()
      ->group("Encoders");
  app.add_option("--pixel-range", flags.pixel_range, "Public range of a pixel")
      ->expected(2)
      ->capture_default_str()
      ->group("Encoders");
  app.add_option("--channels", flags.channels,
                 "Of PNG and JPEG files: 1, grey, or 3, colours; default: as a module takes them, otherwise 1")
      ->check(CLI::IsMember({"1", "3"}))
      ->group("Encoders");
  add_kept_option(app, flags.kept)->group("Encoders");
}

void add_method_flags(CLI::App& app, ClipFitFlags& flags) {
  app.add_option("--method", flags.method,
                 "cross (one noisy matrix, the linear objective), whitened (canonical directions), prompt (contrast "
                 "with the classes' captions); by noisy gradients of sampled batches: batch (clipped as a whole), pair "
                 "(each similarity clipped); auto: prompt where there are classes, otherwise whitened")
      ->check(CLI::IsMember({"auto", "cross", "whitened", "prompt", "batch", "pair"}))
      ->capture_default_str()
      ->group("Method");
  app.add_option("--objective", flags.objective,
                 "infonce (prompt, batch, pair) or linear (cross, whitened, batch); follows the method")
      ->check(CLI::IsMember({"infonce", "linear"}))
      ->group("Method");
  app.add_option("--dim", flags.dim, "Dimensions of the embedding; default: classes - 1, or 16")->group("Method");
  app.add_option("--temperature", flags.temperature,
                 "batch, pair: of the loss. Otherwise of the scores: a linear head takes it in, the model keeps it")
      ->capture_default_str()
      ->group("Method");
}

void add_training_flags(CLI::App& app, ClipFitFlags& flags) {
  const ClipTraining defaults;
  const char* group = "Training (batch, pair)";
  app.add_option(
         "--clip", flags.clip,
         fmt::format("Longest gradient: of a batch (batch), of one similarity (pair); default {}", defaults.clip))
      ->group(group);
  app.add_option("--sample-rate", flags.sample_rate,
                 fmt::format("Public probability of a pair to be in a batch; default {}", defaults.sample_rate))
      ->group(group);
  app.add_option("--steps", flags.steps, fmt::format("Batches in all; default {}", defaults.steps))->group(group);
  app.add_option("--optimizer", flags.optimizer, "adam (default) or sgd")
      ->check(CLI::IsMember({"adam", "sgd"}))
      ->group(group);
  app.add_option(
         "--lr", flags.rate,
         fmt::format("Learning rate; default {} for adam, {} for sgd", defaults.rate, default_rate(Optimizer::kSgd)))
      ->group(group);
  app.add_option("--start", flags.start,
                 "random heads, or those of cross or whitened, for which three tenths of the budget go")
      ->check(CLI::IsMember({"random", "cross", "whitened"}))
      ->capture_default_str()
      ->group(group);
}

Command clip_fit_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("fit", "Fit heads on private pairs");
  auto flags = std::make_shared<ClipFitFlags>();
  flags->pairs.add_to(*app);
  flags->person.add_to(*app);
  app->get_option("--person")
      ->description(
          "Text file that says whose a pair is, an id per line: what is protected is then a person, with all their "
          "pairs. The ledger knows them by the file's name without its ending");
  app->add_option("--x-fields", flags->pairs.files.x_fields, "CSV: numbers in each line of --x")->group("Pairs");
  app->add_option("--y-fields", flags->pairs.files.y_fields, "CSV: numbers in each line of --y")->group("Pairs");
  add_missing_option(*app, flags->missing, "Pairs");
  add_encoder_flags(*app, *flags);
  add_method_flags(*app, *flags);
  add_training_flags(*app, *flags);
  flags->privacy.add_to(*app);
  app->remove_option(app->get_option("--delta"));
  flags->privacy.adjacency.clear();
  app->get_option("--adjacency")
      ->description(
          "What is protected: replace-one row, or add-remove-one (hides the row count; default for batch, pair)")
      ->default_str("");
  app->add_option("--delta", flags->delta, "Probability that epsilon does not hold, or auto: pairs^-1.1")
      ->required()
      ->group("Privacy");
  flags->output.add_to(*app);
  app->get_option("--image-shape")
      ->description("HEIGHTxWIDTH of an image; PNG and JPEG files say it themselves; default: square")
      ->group("Encoders");
  flags->run.add_to(*app);
  flags->run.add_engine_to(*app);
  app->get_option("--engine")
      ->description(
          "Who holds the pairs: local, this process; mpi, all ranks (mpirun -n R eigenveil ...), a share each; "
          "not for batch and pair");
  app->footer(
      "\nExample:\n  eigenveil clip fit --images train-images.idx --labels train-labels.idx --class-names names.txt "
      "--epsilon 1 --delta auto\n"
      "  eigenveil clip eval model.npz --images test-images.idx --labels test-labels.idx --class-names names.txt");
  return {app, [flags] { return run_clip_fit(*flags); }};
}

// A model tells which encoder it was fitted with, but only the user names a file to be read or run.
void add_named_encoders(CLI::App& app, NamedEncoders& named) {
  app.add_option("--image-encoder", named.image,
                 "torchscript:FILE, if the model was fitted with one: the same file, which its hash tells");
  app.add_option("--text-encoder", named.text, "torchscript:FILE or vectors:FILE, likewise");
  add_kept_option(app, named.kept);
}

struct ClipEvalFlags {
  std::string model;
  NamedEncoders named;
  ClipPairFlags pairs;
  bool retrieval = false;
  bool json = false;
  bool quiet = false;
  RunFlags run;
};

int run_clip_eval(const ClipEvalFlags& flags) {
  const auto run = flags.run.options();
  if (!run) return fail(run.error());
  const auto model = read_model(flags.model);
  if (!model) return fail(model.error());
  const auto metrics = [&] {
    Terminal terminal(flags.quiet);
    return evaluate_clip(*model, flags.named, flags.pairs.files, flags.retrieval, *run, terminal);
  }();
  if (!metrics) return fail(metrics.error());
  warn_of_kept(flags.named.kept, flags.quiet);
  constexpr int kDepths[] = {1, 5, 10};
  if (flags.json) {
    nlohmann::json object = {{"model", flags.model}, {"pairs", metrics->pairs}, {"private", false}};
    if (metrics->accuracy) object["accuracy"] = *metrics->accuracy;
    for (std::size_t k = 0; k < metrics->image_to_text.size(); ++k) {
      object["image_to_text"][fmt::format("recall@{}", kDepths[k])] = metrics->image_to_text[k];
      object["text_to_image"][fmt::format("recall@{}", kDepths[k])] = metrics->text_to_image[k];
    }
    say_json(object);
    return 0;
  }
  if (metrics->accuracy)
    tell("Zero-shot accuracy on {} pairs: {:.2f}%\n", with_commas(metrics->pairs), 100 * *metrics->accuracy);
  for (std::size_t k = 0; k < metrics->image_to_text.size(); ++k)
    tell("Recall@{:<2}  image to text {:6.2f}%   text to image {:6.2f}%\n", kDepths[k], 100 * metrics->image_to_text[k],
         100 * metrics->text_to_image[k]);
  tell("These figures describe the pairs they were computed on: they are NOT private. {}\n", privacy_in_words(*model));
  return 0;
}

Command clip_eval_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("eval", "Zero-shot accuracy and retrieval on pairs (not private)");
  auto flags = std::make_shared<ClipEvalFlags>();
  app->add_option("MODEL", flags->model, "Model file, as written by 'eigenveil clip fit'")->required();
  flags->pairs.add_to(*app);
  add_named_encoders(*app, flags->named);
  app->add_flag("--retrieval", flags->retrieval, "Recall at 1, 5 and 10, both ways");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->add_option("--threads", flags->run.threads, "Threads; 0: all cores");
  app->footer(
      "\nExample:\n  eigenveil clip eval model.npz --images test-images.idx --labels test-labels.idx --class-names "
      "names.txt");
  return {app, [flags] { return run_clip_eval(*flags); }};
}

struct ClipEmbedFlags {
  std::string model;
  NamedEncoders named;
  PairFiles what;
  std::string out;
  bool json = false;
  bool quiet = false;
  RunFlags run;
};

int run_clip_embed(const ClipEmbedFlags& flags) {
  const auto run = flags.run.options();
  if (!run) return fail(run.error());
  const auto model = read_model(flags.model);
  if (!model) return fail(model.error());
  const auto rows = [&] {
    Terminal terminal(flags.quiet);
    return embed_clip(*model, flags.named, flags.what, flags.out, *run, terminal);
  }();
  if (!rows) return fail(rows.error());
  warn_of_kept(flags.named.kept, flags.quiet);
  if (flags.json)
    say_json({{"embeddings", flags.out}, {"rows", *rows}, {"private", false}});
  else
    tell("Wrote {} embeddings to {}.\nThey describe single rows: they are NOT private. {}\n", with_commas(*rows),
         flags.out, privacy_in_words(*model));
  return 0;
}

Command clip_embed_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("embed", "Unit embeddings of images, texts or vectors (not private)");
  auto flags = std::make_shared<ClipEmbedFlags>();
  app->add_option("MODEL", flags->model, "Model file, as written by 'eigenveil clip fit'")->required();
  app->add_option("--images", flags->what.images, kImagesHelp);
  app->add_option("--texts", flags->what.captions, "Texts to embed, one per line");
  app->add_option("--x", flags->what.x, "Vectors of the first view");
  app->add_option("--y", flags->what.y, "Vectors of the second view");
  add_named_encoders(*app, flags->named);
  app->add_option("--out", flags->out, "Embeddings to write: .npy or .csv")->required();
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->add_option("--threads", flags->run.threads, "Threads; 0: all cores");
  app->footer("\nExample:\n  eigenveil clip embed model.npz --images test-images.idx --out embeddings.npy");
  return {app, [flags] { return run_clip_embed(*flags); }};
}

}  // namespace

std::vector<Command> clip_commands(CLI::App& program) {
  auto* clip = program.add_subcommand("clip", "Private joint embeddings of images and texts, or of any two views");
  clip->require_subcommand(1);
  return {clip_fit_command(*clip), clip_eval_command(*clip), clip_embed_command(*clip), clip_train_command(*clip),
          clip_encoders_command(*clip)};
}

}  // namespace eigenveil::app
