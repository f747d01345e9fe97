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

Result<PairInputs> open_inputs(const PairReading& reading, int threads) {
  EIGENVEIL_TRY(check_files(reading));
  const PairFiles& pairs = reading.files;
  const EncoderChoices& choices = reading.encoders;
  PairInputs inputs;
  inputs.vectors = has_x(reading);
  inputs.classed = !pairs.labels.empty();
  if (inputs.vectors) return inputs;
  inputs.text = EIGENVEIL_TRY(TextEncoder::from_text(choices.text_encoder, choices.text_sha256, threads));
  inputs.images = EIGENVEIL_TRY(encoder_for(pairs.images, choices, threads));
  if (inputs.classed) EIGENVEIL_TRY(read_classes(pairs, inputs));
  return inputs;
}

Result<std::unique_ptr<View>> vectors_of(const std::shared_ptr<GivenRows>& given, const std::string& path) {
  return given ? vector_view(EIGENVEIL_TRY(given->take({})), given->name()) : vector_view(path);
}

Result<PairSource> views_of(const PairReading& reading, const PairInputs& inputs, int threads) {
  const PairFiles& pairs = reading.files;
  auto first = EIGENVEIL_TRY(
      inputs.vectors ? vectors_of(reading.given_x, pairs.x)
                     : image_view(pairs.images, *inputs.images, inputs.basis ? &*inputs.basis : nullptr, threads));
  auto second = EIGENVEIL_TRY(inputs.vectors   ? vectors_of(reading.given_y, pairs.y)
                              : inputs.classed ? label_view(pairs.labels, inputs.classes.size(), pairs.class_names)
                                               : caption_view(pairs.captions, *inputs.text));
  PairSource source(std::move(first), std::move(second),
                    reading.given_x  ? reading.given_x->name()
                    : inputs.vectors ? pairs.x
                                     : pairs.images,
                    reading.given_y  ? reading.given_y->name()
                    : inputs.vectors ? pairs.y
                    : inputs.classed ? pairs.labels
                                     : pairs.captions);
  EIGENVEIL_TRY(source.check());
  return source;
}

}  // namespace

std::vector<std::string> private_files(const PairFiles& files) {
  std::vector<std::string> given;
  for (const std::string& path : {files.x, files.y, files.images, files.captions, files.labels})
    if (!path.empty()) given.push_back(path);
  return given;
}

Result<OpenedPairs> open_pairs(const PairReading& reading, const Share& share, int threads) {
  // The views look at the encoders where they lie.
  const auto inputs = std::make_shared<PairInputs>(EIGENVEIL_TRY(open_inputs(reading, threads)));
  inputs->basis = reading.basis;
  if (!inputs->basis && inputs->images && reading.directions > 0 && inputs->images->options().kind == "scatter") {
    // A basis takes long: files that do not fit are refused first.
    EIGENVEIL_TRY(views_of(reading, *inputs, threads));
    inputs->basis = EIGENVEIL_TRY(public_basis(*inputs->images, reading.directions, kPublicImages, threads));
  }
  auto source = EIGENVEIL_TRY(views_of(reading, *inputs, threads));
  inputs->x_features = source.first_features();
  return OpenedPairs{inputs, data::share_of(std::make_unique<PairSource>(std::move(source)), share)};
}

}  // namespace eigenveil
