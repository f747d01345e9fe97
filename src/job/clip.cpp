// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/clip.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/estimators/start.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

bool trains(ClipMethod method) { return method == ClipMethod::kBatch || method == ClipMethod::kPair; }

const char* objective_of(const ClipOptions& options) {
  const bool contrastive = options.method == ClipMethod::kPrompt || options.method == ClipMethod::kPair ||
                           (options.method == ClipMethod::kBatch && !options.training.linear);
  return contrastive ? "infonce" : "linear";
}

Result<ClipOptions> options_for(const ClipJob& job, const OpenedData& opened) {
  const PairInputs& inputs = *opened.pairs;
  const std::size_t columns = opened.map.features();
  const std::size_t x_columns = inputs.x_features;
  ClipOptions options{.method = job.method.value_or(inputs.classed ? ClipMethod::kPrompt : ClipMethod::kWhitened),
                      .dim = 0};
  options.captions = inputs.captions;
  options.count_rows = preparation_of(job.fit.rows).count_rows;
  if (!inputs.classed) options.x_columns = x_columns;
  options.dim = job.dim.value_or(inputs.classed ? inputs.classes.size() - 1
                                                : std::min<std::size_t>({16, x_columns, columns - x_columns}));
  if (trains(options.method)) {
    options.training = job.training.value_or(ClipTraining{});
    options.training.temperature = job.temperature;
    options.training.linear = job.objective == "linear";
  } else if (job.training) {
    return usage_error("`clip`, `sample_rate`, `steps`, `optimizer` and `lr` are for `method` batch and pair");
  }
  options.start_by = job.start;
  const std::string objective = objective_of(options);
  if (job.objective && *job.objective != objective)
    return usage_error(
        fmt::format("`method` {} has the objective {}, not {}", name(options.method), objective, *job.objective));
  if (!(job.temperature > 0) || !std::isfinite(job.temperature))
    return usage_error(fmt::format("`temperature` must be finite and positive, but is {}", job.temperature));
  return options;
}

// Name and hash of an encoder: neither a path nor anything that a reader could be made to run.
void add_identity(nlohmann::json& encoders, const std::string& side, const EncoderIdentity& identity) {
  encoders[side] = identity.kind;
  if (identity.sha256.empty()) return;
  encoders[side + "_file"] = printable(identity.file);
  encoders[side + "_sha256"] = identity.sha256;
}

nlohmann::json encoders_json(const PairInputs& inputs) {
  if (inputs.vectors) return {{"image", "vectors"}, {"text", "vectors"}};
  const auto& image = inputs.images->options();
  nlohmann::json encoders = {
      {"height", image.height}, {"width", image.width}, {"lower", image.lower}, {"upper", image.upper}};
  add_identity(encoders, "image", inputs.images->identity());
  add_identity(encoders, "text", inputs.text->identity());
  if (inputs.images->has_module() || image.channels > 1) encoders["channels"] = image.channels;
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
      "e^(2/temperature) = {:.4g} pairs. Raise `temperature` or `sample_rate`.",
      PairGradient::bound(options.training.temperature, 1), PairGradient::spread(options.training.temperature));
}

// What encoders promise that are releases themselves: every row is seen through them, whoever trained them on what.
Result<nlohmann::json> promises_of(const PairInputs& inputs, bool people) {
  nlohmann::json promises = nlohmann::json::array();
  if (inputs.vectors) return promises;
  for (const EncoderIdentity& encoder : {inputs.images->identity(), inputs.text->identity()})
    EIGENVEIL_TRY(
        add_promises(promises, EIGENVEIL_TRY(promises_in(encoder.manifest, encoder.file, encoder.sha256, people))));
  return promises;
}

class ClipEstimator final : public Estimator {
 public:
  /// `promises`: of what the inputs were made with.
  ClipEstimator(ClipOptions options, double temperature, std::shared_ptr<const PairInputs> inputs,
                nlohmann::json promises)
      : options_(std::move(options)),
        temperature_(temperature),
        inputs_(std::move(inputs)),
        promises_(std::move(promises)) {}

  std::string_view name() const override { return "clip"; }
  std::string method() const override { return std::string(eigenveil::name(options_.method)); }
  std::string purpose() const override {
    return fmt::format("clip, method {}{}, dim {}", method(),
                       options_.start_by ? fmt::format(", start {}", eigenveil::name(*options_.start_by)) : "",
                       options_.dim);
  }
  nlohmann::json options() const override;
  Status check(const RowsShape& shape, const Budget& budget) const override;
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    return plan_clip(budget.adjacency, settled(budget));
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::hopeless(shape, budget, options_);
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    return columns * columns * sizeof(double) * (threads + 12);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override;
  std::vector<std::string> notes(std::size_t rows) const override;

 private:
  ClipOptions settled(const Budget& budget) const {
    ClipOptions options = options_;
    follow_budget(options, budget.epsilon, budget.delta);
    return options;
  }
  ClipOptions options_;
  double temperature_;  ///< of the scores: the model keeps it
  std::shared_ptr<const PairInputs> inputs_;
  nlohmann::json promises_;
};

nlohmann::json ClipEstimator::options() const {
  nlohmann::json chosen = {{"dim", options_.dim}, {"objective", objective_of(options_)}, {"temperature", temperature_}};
  if (trains(options_.method)) chosen.update(training_json(options_));
  return chosen;
}

Status ClipEstimator::check(const RowsShape& shape, const Budget& budget) const {
  if (trains(options_.method) && budget.adjacency != Adjacency::kAddRemoveOne)
    return usage_error(
        fmt::format("`method` {} samples its batches, which hides one pair more or less: say "
                    "`adjacency` add-remove-one",
                    method()));
  if (shape.rows && *shape.rows < 2) return bad_input("there must be at least two pairs");
  return eigenveil::check(shape, options_);
}

Result<Fit> ClipEstimator::fit(Oracle& oracle, const Budget& budget) const {
  const ClipOptions options = settled(budget);
  const auto found = EIGENVEIL_TRY(fit_clip(oracle, options));
  Matrix image = found.image_weights;
  Vector offset = image * found.image_mean;
  if (inputs_->basis) {
    // W (B^T (e - m) - mean)
    image = found.image_weights * inputs_->basis->basis.transpose();
    offset += image * inputs_->basis->mean;
  }
  Fit fit{{{"image_weights", image},
           {"image_offset", offset, true},
           {"text_weights", found.text_weights},
           {"text_offset", found.text_weights * found.text_mean, true}},
          found.rows};
  if (trains(options.method) && !options.start_by) fit.rows.reset();  // nobody asked
  fit.facts["encoders"] = encoders_json(*inputs_);
  add_start(fit, promises_, "sees rows through the encoders");
  if (options.method == ClipMethod::kPair && PairGradient::spread(options.training.temperature) > 100)
    fit.warnings.push_back(spread_note(options));
  if (inputs_->classed) {
    fit.facts["classes"] = inputs_->classes;
    fit.facts["prompts"] = inputs_->prompts;
  }
  if (options.method == ClipMethod::kPrompt)
    fit.options = {{"sweeps", options.sweeps},     {"clip", options.clip},   {"step", options.step},
                   {"momentum", options.momentum}, {"floor", options.floor}, {"gram_share", options.gram_share}};
  return fit;
}

std::vector<std::string> ClipEstimator::notes(std::size_t rows) const {
  if (options_.method != ClipMethod::kPair) return {};
  const double expected = options_.training.sample_rate * static_cast<double>(rows);
  if (expected > 10 * PairGradient::spread(options_.training.temperature)) return {};
  return {fmt::format("{} Here about {:.3g} are expected.", spread_note(options_), expected)};
}

Result<Rivals> rivals_of(const ClipJob& job, const OpenedData& opened) {
  const ClipOptions options = EIGENVEIL_TRY(options_for(job, opened));
  auto promises = EIGENVEIL_TRY(promises_of(*opened.pairs, job.fit.rows.person.has_value()));
  std::unique_ptr<Estimator> fitting =
      std::make_unique<ClipEstimator>(options, job.temperature, opened.pairs, std::move(promises));
  if (job.fit.privacy.calibration == Calibration::kPaper) fitting = papers::estimator(options, std::move(fitting));
  Rivals rivals;
  rivals.estimators.push_back(std::move(fitting));
  return rivals;
}

constexpr double kLargestForecast = 4096;  // pairs of a batch

// n rows have batches of the same size as any other number of rows.
Contender contender_for(ClipMethod method, const PairModel& model, const ClipTrial& trial) {
  ClipOptions options{.method = method, .dim = model.dim};
  options.x_columns = model.x_columns;
  options.training = trial.training;
  if (trains(method)) options.start_by = trial.start;
  const auto inputs = std::make_shared<const PairInputs>(PairInputs{.vectors = true, .x_features = model.x_columns});
  Contender contender{[=](std::size_t rows) {
    ClipOptions known = options;
    known.training.sample_rate = std::min(1.0, trial.batch / static_cast<double>(rows));
    return std::make_unique<ClipEstimator>(known, known.training.temperature, inputs, nlohmann::json::array());
  }};
  if (trains(method)) contender.adjacency = Adjacency::kAddRemoveOne;
  return contender;
}

}  // namespace

std::string_view name(ClipMethod method) {
  constexpr std::string_view kNames[] = {"cross", "whitened", "prompt", "batch", "pair"};
  return kNames[static_cast<std::size_t>(method)];
}

Result<ForecastRequest> clip_forecast(const PairModel& model, const ClipTrial& trial, const Budget& budget) {
  if (!(trial.batch >= 2 && trial.batch <= kLargestForecast))
    return usage_error(fmt::format("`batch` must be from 2 to {}, but is {}", kLargestForecast, trial.batch));
  ForecastRequest request{.task = "clip", .model = public_model(model), .budget = budget};
  request.subject = "The embedding";
  request.remedies = "Gather more pairs, use fewer columns, or spend more epsilon.";
  for (const ClipMethod method : {ClipMethod::kCross, ClipMethod::kWhitened, ClipMethod::kBatch, ClipMethod::kPair})
    request.contenders.push_back(contender_for(method, model, trial));
  request.facts = {{"dim", model.dim}, {"sample_rate", std::min(1.0, trial.batch / static_cast<double>(model.rows))}};
  if (trial.start) request.facts["start"] = name(*trial.start);
  if (const double spread = PairGradient::spread(trial.training.temperature); trial.batch < 10 * spread)
    request.notes.push_back(fmt::format(
        "pair pays only if batches are far larger than e^(2/temperature) = {:.3g} pairs; here they have about {:g}.",
        spread, trial.batch));
  return request;
}

void name_people(ClipJob& job, PersonOptions person) {
  job.pairs.person = person.column;
  person.column = std::filesystem::path(person.column).stem().string();
  job.fit.rows.person = std::move(person);
}

Result<Study> study(ClipJob job) {
  if (job.fit.run.engine && job.method && trains(*job.method))
    return usage_error(
        fmt::format("`method` {} needs whole batches in one process: leave `engine` out", name(*job.method)));
  const bool scatter =
      joined_encoders(job.encoders.image_encoder).front() == "scatter" && job.pairs.x.empty() && !job.given_x;
  job.fit.rows.pairs =
      PairReading{.files = job.pairs,
                  .encoders = job.encoders,
                  .directions = scatter ? job.basis.value_or(public_directions(job.fit.privacy.epsilon)) : 0,
                  .given_x = job.given_x,
                  .given_y = job.given_y};
  const FitJob fit = job.fit;
  return Study{fit, [job = std::move(job)](const OpenedData& opened) { return rivals_of(job, opened); }};
}

Status release_series(const std::vector<ClipJob>& jobs, Observer& observer,
                      const std::function<Status(const ClipJob&, const Release&)>& done) {
  const Study first = EIGENVEIL_TRY(study(jobs.front()));
  observer.step("drawing public images");
  auto opened = EIGENVEIL_TRY(open_data(first.job.rows, thread_count(first.job.run)));
  const auto rivals = EIGENVEIL_TRY(first.rivals(opened));
  for (const ClipJob& job : jobs) EIGENVEIL_TRY(check(job.fit, rivals, opened));
  const std::size_t reserved = rivals.estimators.front()->bytes(opened.map.features(), thread_count(first.job.run));
  const auto rows = EIGENVEIL_TRY(bound_rows(opened, first.job.rows, first.job.run, reserved, observer));
  // Copies of rows in a file would be the same rows.
  if (rows.store().spilled()) return usage_error("several fits of the same pairs need them in memory");
  for (const ClipJob& job : jobs) {
    FitJob fit = job.fit;
    fit.rows = first.job.rows;
    const auto held = own_rows(sums_of(BoundedRows(rows)), rows.diagnostics());
    EIGENVEIL_TRY(done(job, EIGENVEIL_TRY(release(fit, rivals, opened, *held, observer))));
  }
  return {};
}

}  // namespace eigenveil
