// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/forecast/pair_model.hpp"
#include "eigenveil/job/forecast.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

struct ClipJob {
  FitJob fit;
  PairFiles pairs;
  EncoderChoices encoders;
  std::optional<ClipMethod> method;      ///< default: prompt where there are classes, otherwise whitened
  std::optional<std::string> objective;  ///< "infonce" (prompt, pair), "linear" (cross, whitened); batch takes either
  std::optional<std::size_t> dim;        ///< default: classes - 1, or 16
  double temperature = 1;                ///< batch, pair: of the loss; otherwise of the scores, the model keeps it
  std::optional<ClipTraining> training;  ///< batch, pair; its temperature and objective are the two above
  std::optional<ClipMethod> start;       ///< batch, pair: cross or whitened first, of the same budget; default: random
  std::optional<std::size_t> basis;      ///< scatter: how many public directions; default: by the budget
  std::shared_ptr<GivenRows> given_x = {};  ///< vectors of both views that the caller opened, instead of files
  std::shared_ptr<GivenRows> given_y = {};
};

/// Whose the pairs are: the column of `person` is a text file, an id per line, whose name without its ending stands for
/// it in ledgers and manifests.
void name_people(ClipJob& job, PersonOptions person);

/// Model "clip": image_weights (r x d1), image_offset (r), text_weights (r x d2), text_offset (r):
///   f(x) = image_weights e(x) - image_offset,  g(y) = text_weights e(y) - text_offset, both to be made of unit length.
Result<Study> study(ClipJob job);

/// How the methods that learn from pairs would be tried.
struct ClipTrial {
  double batch = 64;                     ///< batch, pair: expected size of a batch; the sample rate is batch / rows
  ClipTraining training = {};            ///< batch, pair: everything else
  std::optional<ClipMethod> start = {};  ///< batch, pair: cross or whitened first
};

/// How well cross, whitened, batch and pair would do on such pairs. The latter two are add-remove-one whatever the
/// budget says.
Result<ForecastRequest> clip_forecast(const PairModel& model, const ClipTrial& trial, const Budget& budget);

/// Several fits of the same pairs, which are read and encoded once: jobs that differ in their privacy, seed and
/// outputs.
Status release_series(const std::vector<ClipJob>& jobs, Observer& observer,
                      const std::function<Status(const ClipJob&, const Release&)>& done);

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
  std::string kept = {};   ///< EncoderChoices::kept
};
Result<ClipMetrics> evaluate_clip(const Model& model, const NamedEncoders& named, const PairFiles& pairs,
                                  bool retrieval, const RunOptions& run, Observer& observer);

/// Writes unit embeddings of images, vectors (x or y) or captions, as .npy or .csv. Returns how many.
Result<std::size_t> embed_clip(const Model& model, const NamedEncoders& named, const PairFiles& what,
                               const std::string& out, const RunOptions& run, Observer& observer);

/// The same of vectors of one of the views, without a file to write. `given`: instead of `path`.
enum class PairSide { kFirst, kSecond };
Result<RowMajorMatrix> embed_clip(const Model& model, PairSide side, const std::string& path,
                                  const std::shared_ptr<GivenRows>& given);

std::string_view name(ClipMethod method);

}  // namespace eigenveil
