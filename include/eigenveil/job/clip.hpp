#pragma once

#include <functional>

#include "eigenveil/encoders/images.hpp"
#include "eigenveil/encoders/text.hpp"
#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/job/manifest.hpp"

namespace eigenveil {

/// Where pairs come from: vectors of both views; or images, and captions or labels of named classes.
struct PairFiles {
  std::string x;            ///< vectors of the first view
  std::string y;            ///< vectors of the second
  std::string images;       ///< IDX, NPY, a folder of such files, or a folder of PNG and JPEG files
  std::string captions;     ///< a text file, a caption a line
  std::string labels;       ///< numbers of classes, from 0
  std::string class_names;  ///< a text file, a class a line: public
  std::string prompts;      ///< a text file, "a photo of a {}" a line: public; default: a few such
};

/// How views become vectors: public.
struct EncoderChoices {
  std::string image_encoder = "scatter";
  std::string text_encoder = "hash";
  std::string image_sha256 = {};  ///< what the file must have, for a model that was fitted with it; empty: any
  std::string text_sha256 = {};
  std::optional<std::pair<std::size_t, std::size_t>> image_shape = {};  ///< default: of the files, or square
  std::optional<std::size_t> channels =
      {};  ///< torchscript, folders of PNG and JPEG; default: as the module takes them
  double lower = 0;
  double upper = 255;
};

/// Pairs to be read, as every process that holds some of them must know them.
struct PairReading {
  PairFiles files;
  EncoderChoices encoders;
  std::optional<PublicBasis> basis = {};  ///< made once for all: its last digits depend on the machine
};

/// Reads, encodes and bounds a share of the pairs.
Result<BoundedRows> bound_pairs(const PairReading& reading, const Share& share, const RunOptions& run,
                                Observer& observer);

struct ClipJob {
  PairFiles pairs;
  EncoderChoices encoders;
  std::optional<ClipMethod> method;      ///< default: prompt where there are classes, otherwise whitened
  std::optional<std::string> objective;  ///< "infonce" (prompt, pair), "linear" (cross, whitened); batch takes either
  std::optional<std::size_t> dim;        ///< default: classes - 1, or 16
  double temperature = 1;                ///< batch, pair: of the loss; otherwise of the scores, the model keeps it
  std::optional<ClipTraining> training;  ///< batch, pair; its temperature and objective are the two above
  std::optional<ClipMethod> start;       ///< batch, pair: cross or whitened first, of the same budget; default: random
  std::optional<std::size_t> basis;      ///< scatter: how many public directions; default: by the budget
  PrivacyOptions privacy;
  bool auto_delta = false;  ///< delta is 1 / (2 n), n public
  RunOptions run;
  std::string out;
  std::string report;  ///< empty: none
};

struct ClipOutcome {
  Model model;
  BoundingDiagnostics diagnostics;
  std::vector<std::string> notes;  ///< what the number of pairs says about the options. Not private: for the operator
};

/// Model "clip": image_weights (r x d1), image_offset (r), text_weights (r x d2), text_offset (r):
///   f(x) = image_weights e(x) - image_offset,  g(y) = text_weights e(y) - text_offset, both to be made of unit length.
Result<ClipOutcome> run_clip(const ClipJob& job, Observer& observer);

/// Several fits of the same pairs, which are read and encoded once: jobs that differ in their privacy, seed and
/// outputs.
Status run_clip_series(const std::vector<ClipJob>& jobs, Observer& observer,
                       const std::function<Status(const ClipJob&, const ClipOutcome&)>& done);

/// What a model does on pairs. Not private: it describes the pairs it was computed on.
struct ClipMetrics {
  std::size_t pairs;
  std::optional<double> accuracy;  ///< zero-shot, where there are classes
  /// Share of images whose caption is among the 1, 5, 10 nearest, and of captions that find an image of theirs.
  std::vector<double> image_to_text;
  std::vector<double> text_to_image;
};
/// Encoders of files that the caller names. A model tells their hash; it never names what is to be read or run.
struct NamedEncoders {
  std::string image = {};  ///< torchscript:FILE
  std::string text = {};   ///< torchscript:FILE or vectors:FILE
};
Result<ClipMetrics> evaluate_clip(const Model& model, const NamedEncoders& named, const PairFiles& pairs,
                                  bool retrieval, const RunOptions& run, Observer& observer);

/// Writes unit embeddings of images, vectors (x or y) or captions, as .npy or .csv. Returns how many.
Result<std::size_t> embed_clip(const Model& model, const NamedEncoders& named, const PairFiles& what,
                               const std::string& out, const RunOptions& run, Observer& observer);

std::string_view name(ClipMethod method);

}  // namespace eigenveil
