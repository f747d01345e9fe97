// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/given_rows.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/encoders/images.hpp"
#include "eigenveil/encoders/text.hpp"

namespace eigenveil {

// Two views of the same rows as one row source: vectors of both; or images, encoded, with captions or classes.

/// Where pairs come from: vectors of both views; or images, and captions or labels of named classes.
struct PairFiles {
  std::string x = {};            ///< vectors of the first view
  std::string y = {};            ///< vectors of the second
  std::string images = {};       ///< IDX, NPY, a folder of such files, or a folder of PNG and JPEG files
  std::string captions = {};     ///< a text file, a caption per line
  std::string labels = {};       ///< numbers of classes, from 0
  std::string class_names = {};  ///< a text file, a class per line: public
  std::string prompts = {};      ///< a text file, "a photo of a {}" per line: public; default: a few such
  std::size_t x_fields = 0;      ///< CSV: numbers in each line of x; 0: as the first has, unless that may be no row
  std::size_t y_fields = 0;
  std::string person = {};  ///< a text file, whose pair it is per line: what is protected is then a person
};

/// How views become vectors: public.
struct EncoderChoices {
  std::string image_encoder = "scatter";
  std::string text_encoder = "hash";
  std::string image_sha256 = {};  ///< what the file must have, for a model that was fitted with it; empty: any
  std::string text_sha256 = {};
  std::optional<std::pair<std::size_t, std::size_t>> image_shape = {};  ///< default: of the files, or square
  std::optional<std::size_t> channels = {};  ///< PNG and JPEG; default: as a module takes them, otherwise 1, grey
  double lower = 0;
  double upper = 255;
  std::string kept = {};  ///< what modules give is kept in this folder and found there again, as private as the rows
};

/// Pairs to be read, as every process that holds some of them must know them.
struct PairReading {
  PairFiles files;
  EncoderChoices encoders = {};
  std::size_t directions = 0;               ///< scatter: of a basis made from public images; 0: none is made
  std::optional<PublicBasis> basis = {};    ///< made once for all: its last digits depend on the machine
  std::shared_ptr<GivenRows> given_x = {};  ///< vectors of the first view that the caller opened, instead of a file
  std::shared_ptr<GivenRows> given_y = {};  ///< and of the second
};

/// How many public images a basis is made from.
inline constexpr std::size_t kPublicImages = 4000;

/// What the files of pairs say, before any row is read.
struct PairInputs {
  bool vectors = false;
  bool classed = false;
  std::optional<ImageEncoder> images = {};
  std::optional<PublicBasis> basis = {};
  std::optional<TextEncoder> text = {};
  std::vector<std::string> classes = {};
  std::vector<std::string> prompts = {};
  Matrix captions = {};        ///< classed: a row of unit length for each class
  std::size_t x_features = 0;  ///< of the first view
};

struct OpenedPairs {
  std::shared_ptr<const PairInputs> inputs;
  std::unique_ptr<RowSource> source;  ///< features of the first view, then of the second, or the class; needs `inputs`
};

/// Opens both views, and makes the public basis if one is wanted and not there.
/// `bad_rows`: what becomes of a pair with a value that is missing or not finite, a damaged image or one of another
/// size, a text without a word that is known, a label without a class.
Result<OpenedPairs> open_pairs(const PairReading& reading, BadRows bad_rows, const Share& share, int threads);

/// The files that hold something private.
std::vector<std::string> private_files(const PairFiles& files);

}  // namespace eigenveil
