// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "../intake/pair_source.hpp"
#include "../release/score_file.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/encoders/catalogue.hpp"
#include "eigenveil/job/clip.hpp"
#include "eigenveil/release/kinds.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kMostPairs = 30000;  // retrieval compares all of them with all

// A model as it is used: both sides, with their encoders.
struct Reader {
  const Matrix* image_weights;
  const Matrix* image_offset;
  const Matrix* text_weights;
  const Matrix* text_offset;
  EncoderChoices choices;
  bool vectors;
  std::string missing_image = {};  // why there is no such encoder, if a file must be named
  std::string missing_text = {};
};

// What a model may say of an encoder.
enum class Told { kUnknown, kOurs, kInCatalogue, kInFile };

Told told(const std::string& kind, const std::string& side, bool vectors) {
  if (kind == "vectors") return side == "image" || vectors ? Told::kOurs : Told::kInFile;
  if (side == "text" && kind == "hash") return Told::kOurs;
  auto found = Told::kUnknown;
  for (const std::string& part : joined_encoders(kind)) {
    const bool plain = side == "image" && (part == "scatter" || part == "pixels");
    found = plain                                    ? Told::kOurs
            : catalogue_entry(part, side) != nullptr ? Told::kInCatalogue
            : part == "torchscript"                  ? Told::kInFile
                                                     : Told::kUnknown;
    if (found == Told::kUnknown) return found;
  }
  return found;  // one with weights is the last
}

// "scatter+torchscript:FILE" -> "scatter+torchscript"
std::string kind_named(const std::string& named) { return named.substr(0, named.find(':')); }

// The encoder that a model tells of: one of ours, one of the catalogue, whose hash is known, or the file that the
// caller names, whose hash must fit. What the model says about a file is compared and shown, and never opened.
Status choose_encoder(const nlohmann::json& encoders, const std::string& side, const std::string& named,
                      std::string& chosen, std::string& sha256, std::string& missing) {
  const std::string kind = encoders.at(side);
  const Told is = told(kind, side, encoders.at("image") == "vectors");
  if (is == Told::kUnknown)
    return bad_input(
        fmt::format("the model was fitted with the {} encoder {}, which this program does not know; fit it again", side,
                    eigenveil::quote(kind)));
  chosen = kind;
  if (is != Told::kInFile && !named.empty() && named != kind)
    return usage_error(
        fmt::format("this model was fitted with the {} encoder {}: leave `{}_encoder` out", side, kind, side));
  if (is == Told::kOurs) return {};
  const std::string file = encoders.at(side + "_file");
  sha256 = encoders.at(side + "_sha256");
  if (sha256.size() != 64 || sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    return bad_input(fmt::format("the model does not tell the SHA-256 of its {} encoder; fit it again", side));
  if (is == Told::kInCatalogue) return {};
  if (named.empty())
    missing = fmt::format("this model was fitted with {}:{} (SHA-256 {}): name that file with `{}_encoder` {}:FILE",
                          kind, printable(file), sha256, side, kind);
  else if (kind_named(named) != kind || !names_a_file(named))
    return usage_error(
        fmt::format("this model was fitted with a {} encoder of kind {}: name its file with "
                    "`{}_encoder` {}:FILE",
                    side, kind, side, kind));
  chosen = named;
  return {};
}

Result<Reader> reader_of(const Model& model, const NamedEncoders& named) {
  if (!kind_of(model.manifest).heads) return bad_input("this is no clip model");
  EIGENVEIL_TRY(validate(model, "the model"));
  Reader reader{model.array("image_weights"),
                model.array("image_offset"),
                model.array("text_weights"),
                model.array("text_offset"),
                {},
                false};
  if (!model.manifest.contains("encoders")) return bad_input("the manifest of the clip model names no encoders");
  const auto& encoders = model.manifest["encoders"];
  try {
    EncoderChoices& choices = reader.choices;
    EIGENVEIL_TRY(choose_encoder(encoders, "image", named.image, choices.image_encoder, choices.image_sha256,
                                 reader.missing_image));
    EIGENVEIL_TRY(
        choose_encoder(encoders, "text", named.text, choices.text_encoder, choices.text_sha256, reader.missing_text));
    reader.vectors = choices.image_encoder == "vectors";
    choices.kept = named.kept;
    if (reader.vectors) return reader;
    reader.choices.image_shape = {encoders.at("height"), encoders.at("width")};
    if (encoders.contains("channels")) reader.choices.channels = encoders["channels"];
    reader.choices.lower = encoders.at("lower");
    reader.choices.upper = encoders.at("upper");
  } catch (const nlohmann::json::exception& error) {
    return bad_input(fmt::format("the manifest of the clip model is damaged: {}", printable(error.what())));
  }
  return reader;
}

Result<TextEncoder> text_encoder_of(const Reader& reader, int threads) {
  if (!reader.missing_text.empty()) return usage_error(reader.missing_text);
  return TextEncoder::from_text(reader.choices.text_encoder,
                                {reader.choices.text_sha256, threads, reader.choices.kept});
}

Result<RowMajorMatrix> embed_rows(const RowMajorMatrix& rows, const Matrix& weights, const Matrix& offset) {
  if (rows.cols() != weights.cols())
    return bad_input(fmt::format("the model takes {} features, but there are {}", weights.cols(), rows.cols()));
  RowMajorMatrix embedded = rows * weights.transpose();
  embedded.rowwise() -= offset.reshaped().transpose();
  for (Eigen::Index i = 0; i < embedded.rows(); ++i) embedded.row(i).stableNormalize();
  return embedded;
}

Result<RowMajorMatrix> embed_view(View& view, const Matrix& weights, const Matrix& offset, Observer& observer) {
  std::vector<double> all;
  for (;;) {
    const auto rows = EIGENVEIL_TRY(view.next(1000));
    if (rows.rows() == 0) break;
    const auto embedded = EIGENVEIL_TRY(embed_rows(rows, weights, offset));
    all.insert(all.end(), embedded.data(), embedded.data() + embedded.size());
    observer.progress(view.progress());
  }
  const Eigen::Index r = weights.rows();
  return RowMajorMatrix(Eigen::Map<const RowMajorMatrix>(all.data(), all.size() / r, r));
}

Result<RowMajorMatrix> embed_images(const Reader& reader, const std::string& path, int threads, Observer& observer) {
  if (!reader.missing_image.empty()) return usage_error(reader.missing_image);
  auto images = EIGENVEIL_TRY(images_of(path, reader.choices, threads));
  const std::optional<PublicBasis> none;
  const auto view = image_view(std::move(images.rows), path, images.encoder, none, threads);
  observer.step("embedding images");
  return embed_view(*view, *reader.image_weights, *reader.image_offset, observer);
}

Result<RowMajorMatrix> embed_texts(const Reader& reader, const std::string& path, int threads, Observer& observer) {
  const auto encoder = EIGENVEIL_TRY(text_encoder_of(reader, threads));
  auto view = EIGENVEIL_TRY(caption_view(path, encoder));
  observer.step("embedding texts");
  return embed_view(*view, *reader.text_weights, *reader.text_offset, observer);
}

Result<RowMajorMatrix> embed_vectors(const std::string& path, const Matrix& weights, const Matrix& offset,
                                     Observer& observer, const std::shared_ptr<GivenRows>& given = {}) {
  auto view = EIGENVEIL_TRY(given ? vector_view(EIGENVEIL_TRY(given->take({})), given->name()) : vector_view(path));
  observer.step("embedding vectors");
  return embed_view(*view, weights, offset, observer);
}

// Both sides, and which text belongs to an image.
struct Embedded {
  RowMajorMatrix images;
  RowMajorMatrix texts;
  std::vector<std::size_t> text_of;
};

Result<std::vector<std::string>> lines_or(const std::string& path, const char* what, const nlohmann::json& manifest,
                                          const char* key) {
  if (!path.empty()) return read_lines(path, what);
  if (manifest.contains(key) && manifest[key].is_array()) {
    std::vector<std::string> lines;
    for (const auto& line : manifest[key]) {
      if (!line.is_string()) return bad_input(fmt::format("the {} of the model are damaged: expected texts", key));
      lines.push_back(line.get<std::string>());
    }
    return lines;
  }
  return usage_error(fmt::format("the model has no {}: give a file of them", key));
}

Result<Embedded> embed_classes(const Reader& reader, const Model& model, const PairFiles& pairs, int threads,
                               Embedded embedded) {
  const auto classes = EIGENVEIL_TRY(lines_or(pairs.class_names, "class name", model.manifest, "classes"));
  auto prompts = EIGENVEIL_TRY(pairs.prompts.empty() && !model.manifest.contains("prompts")
                                   ? Result<std::vector<std::string>>(default_prompts())
                                   : lines_or(pairs.prompts, "prompt", model.manifest, "prompts"));
  const auto encoder = EIGENVEIL_TRY(text_encoder_of(reader, threads));
  const auto captions = EIGENVEIL_TRY(encode_prompts(encoder, classes, prompts));
  auto texts = EIGENVEIL_TRY(embed_rows(captions, *reader.text_weights, *reader.text_offset));
  embedded.texts = std::move(texts);
  auto labels = EIGENVEIL_TRY(
      label_view(pairs.labels, classes.size(), pairs.class_names.empty() ? "the model" : pairs.class_names));
  for (;;) {
    const auto rows = EIGENVEIL_TRY(labels->next(100000));
    if (rows.rows() == 0) break;
    for (const double label : rows.reshaped()) embedded.text_of.push_back(static_cast<std::size_t>(label));
  }
  return embedded;
}

Result<Embedded> embed_pairs(const Reader& reader, const Model& model, const PairFiles& pairs, int threads,
                             Observer& observer) {
  Embedded embedded;
  auto images =
      EIGENVEIL_TRY(reader.vectors ? embed_vectors(pairs.x, *reader.image_weights, *reader.image_offset, observer)
                                   : embed_images(reader, pairs.images, threads, observer));
  embedded.images = std::move(images);
  if (!pairs.labels.empty()) return embed_classes(reader, model, pairs, threads, std::move(embedded));
  auto texts =
      EIGENVEIL_TRY(reader.vectors ? embed_vectors(pairs.y, *reader.text_weights, *reader.text_offset, observer)
                                   : embed_texts(reader, pairs.captions, threads, observer));
  embedded.texts = std::move(texts);
  embedded.text_of.resize(embedded.texts.rows());
  std::iota(embedded.text_of.begin(), embedded.text_of.end(), std::size_t{0});
  return embedded;
}

double accuracy_of(const Embedded& e) {
  const RowMajorMatrix scores = e.images * e.texts.transpose();
  std::size_t right = 0;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    Eigen::Index best = 0;
    scores.row(i).maxCoeff(&best);
    right += static_cast<std::size_t>(best) == e.text_of[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(scores.rows());
}

constexpr std::size_t kDepths[] = {1, 5, 10};

void add_recalls(const Embedded& e, ClipMetrics& metrics) {
  const std::size_t n = e.images.rows(), m = e.texts.rows();
  std::vector<std::size_t> found_text(3), found_image(3);
  // The rank of an image's own text: how many others score more
  for (std::size_t i = 0; i < n; ++i) {
    const Vector scores = e.texts * e.images.row(i).transpose();
    const double own = scores[e.text_of[i]];
    const std::size_t above = (scores.array() > own).count();
    for (std::size_t k = 0; k < 3; ++k) found_text[k] += above < kDepths[k] ? 1 : 0;
  }
  // The rank of the best image of a text
  std::size_t asked = 0;
  for (std::size_t j = 0; j < m; ++j) {
    const Vector scores = e.images * e.texts.row(j).transpose();
    double own = -2;
    for (std::size_t i = 0; i < n; ++i)
      if (e.text_of[i] == j) own = std::max(own, scores[i]);
    if (own == -2) continue;
    ++asked;
    const std::size_t above = (scores.array() > own).count();
    for (std::size_t k = 0; k < 3; ++k) found_image[k] += above < kDepths[k] ? 1 : 0;
  }
  for (std::size_t k = 0; k < 3; ++k) {
    metrics.image_to_text.push_back(static_cast<double>(found_text[k]) / static_cast<double>(n));
    metrics.text_to_image.push_back(static_cast<double>(found_image[k]) /
                                    static_cast<double>(std::max<std::size_t>(asked, 1)));
  }
}

}  // namespace

Result<ClipMetrics> evaluate_clip(const Model& model, const NamedEncoders& named, const PairFiles& pairs,
                                  bool retrieval, const RunOptions& run, Observer& observer) {
  const auto reader = EIGENVEIL_TRY(reader_of(model, named));
  if (reader.vectors ? pairs.x.empty() || pairs.y.empty()
                     : pairs.images.empty() || pairs.captions.empty() == pairs.labels.empty())
    return usage_error(reader.vectors ? "this model was fitted on vectors: give `x` and `y`"
                                      : "give `images`, and either `labels` or `captions`");
  const auto embedded = EIGENVEIL_TRY(embed_pairs(reader, model, pairs, thread_count(run), observer));
  const std::size_t n = embedded.images.rows();
  if (n != embedded.text_of.size())
    return bad_input(fmt::format("there are {} images or first vectors but {} texts: every pair needs both", n,
                                 embedded.text_of.size()));
  if (n == 0) return bad_input("there are no pairs");
  ClipMetrics metrics{n, {}, {}, {}};
  if (!pairs.labels.empty()) metrics.accuracy = accuracy_of(embedded);
  if (retrieval || pairs.labels.empty()) {
    if (n > kMostPairs)
      return bad_input(fmt::format("retrieval compares all pairs: give at most {}, not {}", kMostPairs, n));
    observer.step("retrieving");
    add_recalls(embedded, metrics);
  }
  return metrics;
}

Result<RowMajorMatrix> embed_clip(const Model& model, PairSide side, const std::string& path,
                                  const std::shared_ptr<GivenRows>& given) {
  const auto reader = EIGENVEIL_TRY(reader_of(model, {}));
  if (!reader.vectors) return usage_error("this model was fitted on images and texts, not on vectors");
  Observer silent;
  return side == PairSide::kFirst ? embed_vectors(path, *reader.image_weights, *reader.image_offset, silent, given)
                                  : embed_vectors(path, *reader.text_weights, *reader.text_offset, silent, given);
}

Result<std::size_t> embed_clip(const Model& model, const NamedEncoders& named, const PairFiles& what,
                               const std::string& out, const RunOptions& run, Observer& observer) {
  const auto reader = EIGENVEIL_TRY(reader_of(model, named));
  const int given = (what.images.empty() ? 0 : 1) + (what.captions.empty() ? 0 : 1) + (what.x.empty() ? 0 : 1) +
                    (what.y.empty() ? 0 : 1);
  if (given != 1) return usage_error("give one of `images`, `texts`, `x` and `y` to embed");
  if (reader.vectors == (what.x.empty() && what.y.empty()))
    return usage_error(reader.vectors ? "this model was fitted on vectors: give `x` or `y`"
                                      : "this model was fitted on images and texts: give `images` or `texts`");
  const auto rows =
      EIGENVEIL_TRY(!what.images.empty()     ? embed_images(reader, what.images, thread_count(run), observer)
                    : !what.captions.empty() ? embed_texts(reader, what.captions, thread_count(run), observer)
                    : !what.x.empty() ? embed_vectors(what.x, *reader.image_weights, *reader.image_offset, observer)
                                      : embed_vectors(what.y, *reader.text_weights, *reader.text_offset, observer));
  std::vector<std::string> names;
  for (Eigen::Index j = 1; j <= rows.cols(); ++j) names.push_back(fmt::format("e{}", j));
  auto file = EIGENVEIL_TRY(ScoreFile::create(out, names));
  EIGENVEIL_TRY(file.append(rows));
  EIGENVEIL_TRY(file.commit());
  return file.rows();
}

}  // namespace eigenveil
