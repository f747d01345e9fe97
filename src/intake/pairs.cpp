// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/pairs.hpp"

#include "../data/format.hpp"
#include "pair_source.hpp"

namespace eigenveil {
namespace {

bool has_x(const PairReading& reading) { return reading.given_x || !reading.files.x.empty(); }
bool has_y(const PairReading& reading) { return reading.given_y || !reading.files.y.empty(); }

Status check_files(const PairReading& reading) {
  const PairFiles& pairs = reading.files;
  const bool vectors = has_x(reading) || has_y(reading);
  if (vectors && !(has_x(reading) && has_y(reading)))
    return usage_error("`x` and `y` are the two views of the same rows: give both");
  if (vectors && !(pairs.images.empty() && pairs.captions.empty() && pairs.labels.empty()))
    return usage_error("`x` and `y` are vectors of both views already: leave `images`, `captions` and `labels` out");
  if (vectors) return {};
  if (pairs.images.empty()) return usage_error("give `images` with `captions` or `labels`, or `x` with `y`");
  if (pairs.captions.empty() == pairs.labels.empty())
    return usage_error("the images need their texts: give either `captions` or `labels` with `class_names`");
  if (!pairs.labels.empty() && pairs.class_names.empty())
    return usage_error("`labels` are numbers: `class_names` must say which class each stands for");
  return {};
}

Status read_classes(const PairFiles& pairs, PairInputs& inputs) {
  inputs.classes = EIGENVEIL_TRY(read_lines(pairs.class_names, "class name"));
  if (!pairs.prompts.empty()) {
    inputs.prompts = EIGENVEIL_TRY(read_lines(pairs.prompts, "prompt"));
  } else if (inputs.prompts.empty()) {
    inputs.prompts = default_prompts();
  }
  inputs.captions = EIGENVEIL_TRY(encode_prompts(*inputs.text, inputs.classes, inputs.prompts));
  return {};
}

// `images` gets the rows of the images, if there are any.
Result<PairInputs> open_inputs(const PairReading& reading, BadRows bad_rows, int threads,
                               std::unique_ptr<RowSource>& images) {
  EIGENVEIL_TRY(check_files(reading));
  const PairFiles& pairs = reading.files;
  const EncoderChoices& choices = reading.encoders;
  PairInputs inputs;
  inputs.vectors = has_x(reading);
  inputs.classed = !pairs.labels.empty();
  if (inputs.vectors) return inputs;
  inputs.text =
      EIGENVEIL_TRY(TextEncoder::from_text(choices.text_encoder, {choices.text_sha256, threads, choices.kept}));
  auto opened = EIGENVEIL_TRY(images_of(pairs.images, choices, threads, bad_rows));
  images = std::move(opened.rows);
  inputs.images = std::move(opened.encoder);
  if (inputs.classed) EIGENVEIL_TRY(read_classes(pairs, inputs));
  return inputs;
}

Result<std::unique_ptr<View>> vectors_of(const std::shared_ptr<GivenRows>& given, const std::string& path,
                                         std::size_t fields, BadRows bad_rows) {
  return given ? vector_view(EIGENVEIL_TRY(given->take({})), given->name(), bad_rows)
               : vector_view(path, fields, bad_rows);
}

// Both views and what they are called.
struct BothViews {
  std::unique_ptr<View> first, second;
  std::string first_name, second_name;
};

Result<BothViews> both_views(const PairReading& reading, const PairInputs& inputs, std::unique_ptr<RowSource> images,
                             BadRows bad_rows, int threads) {
  const PairFiles& pairs = reading.files;
  BothViews views;
  if (inputs.vectors) {
    views.first = EIGENVEIL_TRY(vectors_of(reading.given_x, pairs.x, pairs.x_fields, bad_rows));
    views.second = EIGENVEIL_TRY(vectors_of(reading.given_y, pairs.y, pairs.y_fields, bad_rows));
    views.first_name = reading.given_x ? reading.given_x->name() : pairs.x;
    views.second_name = reading.given_y ? reading.given_y->name() : pairs.y;
  } else {
    views.first = image_view(std::move(images), pairs.images, *inputs.images, inputs.basis, threads, bad_rows);
    views.second =
        EIGENVEIL_TRY(inputs.classed ? label_view(pairs.labels, inputs.classes.size(), pairs.class_names, bad_rows)
                                     : caption_view(pairs.captions, *inputs.text, bad_rows));
    views.first_name = pairs.images;
    views.second_name = inputs.classed ? pairs.labels : pairs.captions;
  }
  EIGENVEIL_TRY(check_announced(*views.first, *views.second, views.first_name, views.second_name));
  return views;
}

}  // namespace

std::vector<std::string> private_files(const PairFiles& files) {
  std::vector<std::string> given;
  for (const std::string& path : {files.x, files.y, files.images, files.captions, files.labels, files.person})
    if (!path.empty()) given.push_back(path);
  return given;
}

Result<OpenedPairs> open_pairs(const PairReading& reading, BadRows bad_rows, const Share& share, int threads) {
  // The views look at the encoders and the basis where they lie.
  std::unique_ptr<RowSource> images;
  const auto inputs = std::make_shared<PairInputs>(EIGENVEIL_TRY(open_inputs(reading, bad_rows, threads, images)));
  inputs->basis = reading.basis;
  auto views = EIGENVEIL_TRY(both_views(reading, *inputs, std::move(images), bad_rows, threads));
  // A basis takes long: files that do not fit were refused first.
  if (!inputs->basis && inputs->images && reading.directions > 0 && inputs->images->scattered() > 0)
    inputs->basis = EIGENVEIL_TRY(public_basis(*inputs->images, reading.directions, kPublicImages, threads));
  inputs->x_features = views.first->features();
  auto source = std::make_unique<PairSource>(std::move(views.first), std::move(views.second),
                                             std::move(views.first_name), std::move(views.second_name));
  return OpenedPairs{inputs, data::share_of(std::move(source), share)};
}

}  // namespace eigenveil
