// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/clip.hpp"

#include "call.hpp"
#include "eigenveil/job/clip.hpp"

namespace eigenveil {
namespace {

// What was given; the rest as the library has it.
Result<std::optional<ClipTraining>> training_of(const Clip::Options& options) {
  const bool given = options.clip || options.sample_rate || options.steps || options.optimizer || options.lr;
  if (!given) return std::optional<ClipTraining>();
  ClipTraining training;
  training.optimizer = options.optimizer.value_or(training.optimizer);
  training.clip = options.clip.value_or(training.clip);
  training.sample_rate = options.sample_rate.value_or(training.sample_rate);
  training.steps = EIGENVEIL_TRY(front::count(options.steps, "steps")).value_or(training.steps);
  training.rate = options.lr.value_or(default_rate(training.optimizer));
  return std::optional(training);
}

Result<Matrix> embed(const Model& model, PairSide side, const Rows& rows) {
  return Matrix(EIGENVEIL_TRY(embed_clip(model, side, rows.path(), rows.given())));
}

}  // namespace

Clip::Clip(std::shared_ptr<const Model> model)
    : Published(std::move(model)),
      x_weights(array("image_weights")),
      x_offset(array("image_offset").reshaped()),
      y_weights(array("text_weights")),
      y_offset(array("text_offset").reshaped()) {}

Result<Clip> Clip::load(const std::string& path) { return front::load<Clip>(path, "clip"); }

Result<Matrix> Clip::embed_x(const Rows& rows) const { return embed(model(), PairSide::kFirst, rows); }

Result<Matrix> Clip::embed_y(const Rows& rows) const { return embed(model(), PairSide::kSecond, rows); }

namespace {

Result<Study> study_of(const Rows& X, const Rows& Y, const Clip::Options& options, const Spending& spending) {
  auto privacy = EIGENVEIL_TRY(front::privacy_of(spending));
  auto dim = EIGENVEIL_TRY(front::count(options.dim, "dim"));
  auto training = EIGENVEIL_TRY(training_of(options));
  ClipJob job{.fit = {.rows = {}, .privacy = std::move(privacy), .run = front::run_of(options, spending)},
              .pairs = {.x = X.path(), .y = Y.path()},
              .encoders = {}};
  job.method = options.method;
  job.objective = options.objective;
  job.dim = dim;
  job.temperature = options.temperature;
  job.training = training;
  job.start = options.start;
  job.given_x = X.given();
  job.given_y = Y.given();
  if (options.person) name_people(job, *options.person);
  return study(std::move(job));
}

}  // namespace

Result<Clip> clip(const Rows& X, const Rows& Y, const Clip::Options& options, const Spending& spending) {
  return front::publish_study<Clip>(options.observer, [&] { return study_of(X, Y, options, spending); });
}

Result<std::vector<Cost>> clip_cost(const Rows& X, const Rows& Y, const Clip::Options& options,
                                    const Spending& spending, std::optional<Eigen::Index> expected) {
  return front::costs(study_of(X, Y, options, spending), expected);
}

}  // namespace eigenveil
