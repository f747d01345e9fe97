// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/encoders/identity.hpp"
#include "eigenveil/torch/module.hpp"

namespace eigenveil {

/// How a text encoder that is a module is run.
struct TextModule {
  std::string sha256 = {};  ///< that the file must have; empty: any
  int threads = 1;
  std::string kept = {};  ///< features are kept in this folder and found there again; empty: they are not
};

/// Turns text into a vector of unit length. Public: it has no weights, or those of a given file.
class TextEncoder {
 public:
  /// Words and runs of three to five letters, each added with a fixed sign at a fixed place (feature hashing).
  static TextEncoder hash(std::size_t dimensions = 256);
  /// The mean of word vectors: of a text file, a word and its numbers per line, as GloVe has them; or of FILE.npy,
  /// a row per word, whose words are in FILE.txt, one per line.
  /// A `sha256` that is not empty must be that of the file.
  static Result<TextEncoder> vectors(const std::string& path, const std::string& sha256 = {});
  /// encode_text or forward of a TorchScript module. It gets 1 x `bytes` numbers: the bytes of the text (UTF-8, 1 to
  /// 255), cut or filled up with 0.
  static Result<TextEncoder> torchscript(const std::string& path, const TextModule& module, std::size_t bytes = 64);
  /// "hash", "vectors:FILE", "torchscript:FILE" or a name of the catalogue, which gets 256 bytes
  static Result<TextEncoder> from_text(const std::string& name, const TextModule& module = {});

  const EncoderIdentity& identity() const { return identity_; }
  std::size_t dimensions() const { return dimensions_; }

  /// Refuses text without a letter or digit, and without a word that it knows.
  Result<Vector> encode(const std::string& text) const;
  /// Several, a row each; `where` says in an error which one it is about. With BadRows::kMissing a text that would be
  /// refused becomes a row of NaN.
  using Where = std::function<std::string(std::size_t)>;
  Result<RowMajorMatrix> encode(std::span<const std::string> texts, const Where& where,
                                BadRows bad_rows = BadRows::kError) const;

 private:
  TextEncoder() = default;
  static Result<TextEncoder> array_vectors(const std::string& path, const std::string& sha256);
  Status identify(const std::vector<std::string>& files, const std::string& sha256);
  void add_words(const std::string& text, std::span<double> sum) const;
  EncoderIdentity identity_;
  std::size_t dimensions_ = 0;
  std::size_t bytes_ = 0;                          // of a text, as a module gets it
  std::unordered_map<std::string, Vector> words_;  // of vectors:FILE
  std::shared_ptr<const TorchEncoder> module_;     // neither words nor a module: hash
};

/// The lines of a public list, without the blank ones at its end. Refuses a blank line before the end.
Result<std::vector<std::string>> read_lines(const std::string& path, const char* what);

/// The texts of a file of rows: each ends with a newline, and any of them may be empty. With BadRows::kMissing the last
/// one too must end so: otherwise an empty one could not be told from none.
Result<std::vector<std::string>> read_texts(const std::string& path, BadRows bad_rows);

/// A row for each class: the mean of its prompts ("a photo of a {}"), of unit length. K x dimensions.
Result<Matrix> encode_prompts(const TextEncoder& encoder, const std::vector<std::string>& classes,
                              const std::vector<std::string>& prompts);

/// What is said of a class if the user says nothing.
std::vector<std::string> default_prompts();

}  // namespace eigenveil
