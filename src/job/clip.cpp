#include "eigenveil/job/clip.hpp"

#include <fmt/format.h>

#include <cmath>

#include "../data/format.hpp"
#include "clip_source.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/release/report.hpp"
#include "output.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kPublicImages = 4000;

// What the files are, before any row is read.
struct Inputs {
  bool vectors = false;
  bool classed = false;
  std::optional<ImageEncoder> images;
  std::optional<PublicBasis> basis;
  std::optional<TextEncoder> text;
  std::vector<std::string> classes;
  std::vector<std::string> prompts;
  Matrix captions;  // classed: K x d2
};

bool trains(ClipMethod method) { return method == ClipMethod::kBatch || method == ClipMethod::kPair; }

const char* objective_of(const ClipOptions& options) {
  const bool contrastive = options.method == ClipMethod::kPrompt || options.method == ClipMethod::kPair ||
                           (options.method == ClipMethod::kBatch && !options.training.linear);
  return contrastive ? "infonce" : "linear";
}

Status check_files(const PairFiles& pairs) {
  const bool vectors = !pairs.x.empty() || !pairs.y.empty();
  if (vectors && (pairs.x.empty() || pairs.y.empty()))
    return usage_error("--x and --y are the two views of the same rows: give both");
  if (vectors && !(pairs.images.empty() && pairs.captions.empty() && pairs.labels.empty()))
    return usage_error("--x and --y are vectors of both views already: leave --images, --captions and --labels out");
  if (vectors) return {};
  if (pairs.images.empty()) return usage_error("give --images with --captions or --labels, or --x with --y");
  if (pairs.captions.empty() == pairs.labels.empty())
    return usage_error("the images need their texts: give either --captions or --labels with --class-names");
  if (!pairs.labels.empty() && pairs.class_names.empty())
    return usage_error("--labels are numbers: --class-names must say which class each stands for");
  return {};
}

Status read_classes(const PairFiles& pairs, Inputs& inputs) {
  auto classes = EIGENVEIL_TRY(read_lines(pairs.class_names, "class name"));
  inputs.classes = std::move(classes);
  if (!pairs.prompts.empty()) {
    auto prompts = EIGENVEIL_TRY(read_lines(pairs.prompts, "prompt"));
    inputs.prompts = std::move(prompts);
  } else if (inputs.prompts.empty()) {
    inputs.prompts = default_prompts();
  }
  auto captions = EIGENVEIL_TRY(encode_prompts(*inputs.text, inputs.classes, inputs.prompts));
  inputs.captions = std::move(captions);
  return {};
}

Result<Inputs> open_inputs(const PairFiles& pairs, const EncoderChoices& choices, int threads) {
  EIGENVEIL_TRY(check_files(pairs));
  Inputs inputs;
  inputs.vectors = !pairs.x.empty();
  inputs.classed = !pairs.labels.empty();
  if (inputs.vectors) return inputs;
  auto text = EIGENVEIL_TRY(TextEncoder::from_text(choices.text_encoder, choices.text_sha256, threads));
  inputs.text = std::move(text);
  auto images = EIGENVEIL_TRY(encoder_for(pairs.images, choices, threads));
  inputs.images = std::move(images);
  if (inputs.classed) EIGENVEIL_TRY(read_classes(pairs, inputs));
  return inputs;
}

Result<PairSource> open_pairs(const PairFiles& pairs, const Inputs& inputs, int threads) {
  auto first = EIGENVEIL_TRY(
      inputs.vectors ? vector_view(pairs.x)
                     : image_view(pairs.images, *inputs.images, inputs.basis ? &*inputs.basis : nullptr, threads));
  auto second = EIGENVEIL_TRY(inputs.vectors   ? vector_view(pairs.y)
                              : inputs.classed ? label_view(pairs.labels, inputs.classes.size(), pairs.class_names)
                                               : caption_view(pairs.captions, *inputs.text));
  PairSource source(std::move(first), std::move(second), inputs.vectors ? pairs.x : pairs.images,
                    inputs.vectors   ? pairs.y
                    : inputs.classed ? pairs.labels
                                     : pairs.captions);
  EIGENVEIL_TRY(source.check());
  return source;
}

Result<ClipOptions> options_for(const ClipJob& job, const Inputs& inputs, std::size_t x_columns, std::size_t columns) {
  ClipOptions options{.method = job.method.value_or(inputs.classed ? ClipMethod::kPrompt : ClipMethod::kWhitened),
                      .dim = 0};
  options.captions = inputs.captions;
  if (!inputs.classed) options.x_columns = x_columns;
  options.dim = job.dim.value_or(inputs.classed ? inputs.classes.size() - 1
                                                : std::min<std::size_t>({16, x_columns, columns - x_columns}));
  if (trains(options.method)) {
    options.training = job.training.value_or(ClipTraining{});
    options.training.temperature = job.temperature;
    options.training.linear = job.objective == "linear";
  } else if (job.training) {
    return usage_error("--clip, --sample-rate, --steps, --optimizer and --lr are for --method batch and pair");
  }
  options.start_by = job.start;
  const std::string objective = objective_of(options);
  if (job.objective && *job.objective != objective)
    return usage_error(
        fmt::format("--method {} has the objective {}, not {}", name(options.method), objective, *job.objective));
  if (!(job.temperature > 0) || !std::isfinite(job.temperature))
    return usage_error(fmt::format("--temperature must be finite and positive, but is {}", job.temperature));
  EIGENVEIL_TRY(check(RowsShape{columns, {}, {1, 20}, job.privacy.adjacency}, options));
  return options;
}

Result<BoundedRows> read_pairs(RowSource& source, const RunOptions& run, bool classed, Observer& observer) {
  constexpr std::size_t kProgram = std::size_t{512} << 20;  // encoders, a batch of features, BLAS
  const std::size_t columns = source.columns().size() - (classed ? 1 : 0);
  const std::size_t sums = columns * columns * sizeof(double) * (static_cast<std::size_t>(thread_count(run)) + 12);
  if (run.memory < kProgram + sums + (std::size_t{16} << 20))
    return usage_error(fmt::format("--memory {}M is too little: this job needs at least {}M besides the rows",
                                   run.memory >> 20, ((kProgram + sums) >> 20) + 17));
  BoundingOptions bounding{.bound = *RowBound::of(classed ? 1.0 : std::sqrt(2.0))};
  bounding.memory_bytes = run.memory - kProgram - sums;
  bounding.threads = thread_count(run);
  if (classed) bounding.class_column = columns;
  std::vector<std::string> names = source.columns();
  names.resize(columns);
  observer.step("reading and encoding pairs");
  return BoundedRows::read(source, ColumnMap::identity(names), bounding,
                           [&](double share) { observer.progress(share); });
}

// Name and hash of an encoder: neither a path nor anything that a reader could be made to run.
void add_identity(nlohmann::json& encoders, const std::string& side, const EncoderIdentity& identity) {
  encoders[side] = identity.kind;
  if (identity.sha256.empty()) return;
  encoders[side + "_file"] = printable(identity.file);
  encoders[side + "_sha256"] = identity.sha256;
}

nlohmann::json encoders_json(const Inputs& inputs) {
  if (inputs.vectors) return {{"image", "vectors"}, {"text", "vectors"}};
  const auto& image = inputs.images->options();
  nlohmann::json encoders = {
      {"height", image.height}, {"width", image.width}, {"lower", image.lower}, {"upper", image.upper}};
  add_identity(encoders, "image", inputs.images->identity());
  add_identity(encoders, "text", inputs.text->identity());
  if (encoders["image"] == "torchscript") encoders["channels"] = image.channels;
  if (inputs.basis) encoders["public_basis"] = {{"images", kPublicImages}, {"directions", inputs.basis->basis.cols()}};
  return encoders;
}

nlohmann::json training_json(const ClipOptions& options) {
  const ClipTraining& train = options.training;
  nlohmann::json chosen = {
      {"clip", train.clip},
      {"sensitivity",
       options.method == ClipMethod::kPair ? PairGradient::bound(train.temperature, train.clip) : 2 * train.clip},
      {"sample_rate", train.sample_rate},
      {"steps", train.steps},
      {"optimizer", train.optimizer == Optimizer::kAdam ? "adam" : "sgd"},
      {"lr", train.rate}};
  if (options.start_by) chosen["start"] = name(*options.start_by);
  return chosen;
}

// Small sensitivity needs batches far above e^(2/tau): by the temperature alone, which is public, and by the number of
// pairs, which is not.
std::string spread_note(const ClipOptions& options) {
  return fmt::format(
      "The sensitivity of pair is 2 C (1 + e^(2/temperature)) = {:.4g} C: it pays only if batches are far larger than "
      "e^(2/temperature) = {:.4g} pairs. Raise --temperature or --sample-rate.",
      PairGradient::bound(options.training.temperature, 1), PairGradient::spread(options.training.temperature));
}

std::vector<std::string> notes_for(const ClipOptions& options, std::size_t rows) {
  if (options.method != ClipMethod::kPair) return {};
  const double expected = options.training.sample_rate * static_cast<double>(rows);
  if (expected > 10 * PairGradient::spread(options.training.temperature)) return {};
  return {fmt::format("{} Here about {:.3g} are expected.", spread_note(options), expected)};
}

Model model_of(const ClipJob& job, const PrivacyOptions& privacy, const Charge& charge, const Inputs& inputs,
               const ClipOptions& options, const ClipResult& fit) {
  Matrix image = fit.image_weights;
  Vector offset = image * fit.image_mean;
  if (inputs.basis) {
    // W (B^T (e - m) - mean)
    image = fit.image_weights * inputs.basis->basis.transpose();
    offset += image * inputs.basis->mean;
  }
  nlohmann::json chosen = {
      {"dim", options.dim}, {"objective", objective_of(options)}, {"temperature", job.temperature}};
  if (trains(options.method)) chosen.update(training_json(options));
  if (options.method == ClipMethod::kPrompt)
    chosen.update({{"sweeps", options.sweeps},
                   {"clip", options.clip},
                   {"step", options.step},
                   {"momentum", options.momentum},
                   {"gram_share", options.gram_share},
                   {"floor", options.floor}});
  nlohmann::json manifest = common_manifest("clip", name(options.method), chosen, privacy, charge, fit.rows);
  manifest["encoders"] = encoders_json(inputs);
  if (trains(options.method)) {
    if (!options.start_by) manifest.erase("noisy_rows");  // nobody asked
    if (options.method == ClipMethod::kPair && PairGradient::spread(options.training.temperature) > 100)
      manifest["warnings"].push_back(spread_note(options));
  }
  if (inputs.classed) {
    manifest["classes"] = inputs.classes;
    manifest["prompts"] = inputs.prompts;
  }
  return {{{"image_weights", image},
           {"image_offset", offset, true},
           {"text_weights", fit.text_weights},
           {"text_offset", fit.text_weights * fit.text_mean, true}},
          std::move(manifest)};
}

Status check_job(const ClipJob& job) {
  if (job.run.engine && job.method && trains(*job.method))
    return usage_error(
        fmt::format("--method {} needs whole batches in one process: leave --engine out", name(*job.method)));
  if (job.privacy.calibration == Calibration::kPaper && (job.method != ClipMethod::kBatch || job.start))
    return usage_error("--calibration paper is the paper's algorithm: it needs --method batch, without --start");
  if (job.method && trains(*job.method) && job.privacy.adjacency != Adjacency::kAddRemoveOne)
    return usage_error(
        fmt::format("--method {} samples its batches, which hides one pair more or less: say "
                    "--adjacency add-remove-one",
                    name(*job.method)));
  if (job.auto_delta && job.privacy.adjacency != Adjacency::kReplaceOne)
    return usage_error("--delta auto tells the number of rows, which add-remove-one hides: give a number");
  EIGENVEIL_TRY(check_writable(job.out));
  return job.report.empty() ? Status() : check_writable(job.report);
}

struct Ready {
  Inputs inputs;
  ClipOptions options;
};

// All that can be said and refused before pairs are read.
Result<Ready> make_ready(const ClipJob& job, Observer& observer) {
  const int threads = thread_count(job.run);
  auto inputs = EIGENVEIL_TRY(open_inputs(job.pairs, job.encoders, threads));
  EIGENVEIL_TRY(open_pairs(job.pairs, inputs, threads));
  if (inputs.images && inputs.images->options().kind == "scatter") {
    observer.step("drawing public images");
    auto basis = EIGENVEIL_TRY(public_basis(*inputs.images, job.basis.value_or(public_directions(job.privacy.epsilon)),
                                            kPublicImages, threads));
    inputs.basis = std::move(basis);
  }
  const auto source = EIGENVEIL_TRY(open_pairs(job.pairs, inputs, threads));
  const std::size_t columns = source.columns().size() - (inputs.classed ? 1 : 0);
  auto options = EIGENVEIL_TRY(options_for(job, inputs, source.first_features(), columns));
  return Ready{std::move(inputs), std::move(options)};
}

Result<BoundedRows> encode_pairs(const ClipJob& job, const Inputs& inputs, Observer& observer) {
  auto source = EIGENVEIL_TRY(open_pairs(job.pairs, inputs, thread_count(job.run)));
  return read_pairs(source, job.run, inputs.classed, observer);
}

Result<PrivacyPlan> plan_for(const ClipOptions& options, const PrivacyOptions& privacy) {
  PrivacyPlan shape = plan_clip(privacy.adjacency, options);
  if (privacy.calibration == Calibration::kTight) return shape;
  auto tight = EIGENVEIL_TRY(calibrate(shape, privacy.epsilon, privacy.delta, privacy.accounting));
  return paper_plan_training(std::move(tight));
}

Result<ClipOutcome> fit_pairs(const ClipJob& job, const Inputs& inputs, ClipOptions options, HeldRows& held,
                              Observer& observer) {
  const BoundingDiagnostics diagnostics = held.diagnostics();
  const std::size_t rows = diagnostics.rows;
  // Under add-remove-one their number is private and decides nothing.
  if (rows < 2 && job.privacy.adjacency == Adjacency::kReplaceOne) return bad_input("there must be at least two pairs");
  PrivacyOptions privacy = job.privacy;
  if (job.auto_delta) privacy.delta = *Delta::of(0.5 / static_cast<double>(rows));
  follow_budget(options, privacy.epsilon, privacy.delta);
  std::vector<std::string> notes = notes_for(options, rows);
  const auto plan = EIGENVEIL_TRY(plan_for(options, privacy));
  auto charged = EIGENVEIL_TRY(
      charge(held,
             {plan, privacy, job.run,
              PrivateFiles{job.pairs.x, job.pairs.y, job.pairs.images, job.pairs.captions, job.pairs.labels},
              fmt::format("clip --method {}{} --dim {}", name(options.method),
                          options.start_by ? fmt::format(" --start {}", name(*options.start_by)) : "", options.dim)},
             observer));
  const auto fit = EIGENVEIL_TRY(fit_clip(*charged.oracle, options));
  if (!charged.oracle->complete()) return internal_error("the fit did not ask for all that was planned");
  Model model = model_of(job, privacy, charged, inputs, options, fit);
  EIGENVEIL_TRY(write_outputs(model, {job.out, job.report, {}}, observer));
  return ClipOutcome{std::move(model), diagnostics, std::move(notes)};
}

}  // namespace

std::string_view name(ClipMethod method) {
  constexpr std::string_view kNames[] = {"cross", "whitened", "prompt", "batch", "pair"};
  return kNames[static_cast<std::size_t>(method)];
}

Result<BoundedRows> bound_pairs(const PairReading& reading, const Share& share, const RunOptions& run,
                                Observer& observer) {
  auto inputs = EIGENVEIL_TRY(open_inputs(reading.files, reading.encoders, thread_count(run)));
  inputs.basis = reading.basis;
  auto source = EIGENVEIL_TRY(open_pairs(reading.files, inputs, thread_count(run)));
  const auto own = data::share_of(std::make_unique<PairSource>(std::move(source)), share);
  return read_pairs(*own, run, inputs.classed, observer);
}

Result<ClipOutcome> run_clip(const ClipJob& job, Observer& observer) {
  EIGENVEIL_TRY(check_job(job));
  auto ready = EIGENVEIL_TRY(make_ready(job, observer));
  if (job.run.engine) {
    const auto held = job.run.engine->hold_pairs({job.pairs, job.encoders, ready.inputs.basis}, job.run, observer);
    return held ? fit_pairs(job, ready.inputs, ready.options, **held, observer) : held.error();
  }
  auto rows = EIGENVEIL_TRY(encode_pairs(job, ready.inputs, observer));
  const BoundingDiagnostics diagnostics = rows.diagnostics();
  return fit_pairs(job, ready.inputs, ready.options, *own_rows(sums_of(std::move(rows)), diagnostics), observer);
}

Status run_clip_series(const std::vector<ClipJob>& jobs, Observer& observer,
                       const std::function<Status(const ClipJob&, const ClipOutcome&)>& done) {
  for (const ClipJob& job : jobs) EIGENVEIL_TRY(check_job(job));
  const auto ready = EIGENVEIL_TRY(make_ready(jobs.front(), observer));
  const auto rows = EIGENVEIL_TRY(encode_pairs(jobs.front(), ready.inputs, observer));
  // Copies of rows in a file would be the same rows.
  if (rows.store().spilled()) return usage_error("several fits of the same pairs need them in memory");
  for (const ClipJob& job : jobs) {
    const auto held = own_rows(sums_of(BoundedRows(rows)), rows.diagnostics());
    const auto outcome = EIGENVEIL_TRY(fit_pairs(job, ready.inputs, ready.options, *held, observer));
    EIGENVEIL_TRY(done(job, outcome));
  }
  return {};
}

}  // namespace eigenveil
