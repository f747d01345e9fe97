// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/encoders/identity.hpp"
#include "eigenveil/encoders/scatter.hpp"
#include "eigenveil/torch/module.hpp"

namespace eigenveil {

/// Turns an image into features of length one at most. Public: a function of one image alone, without weights or with
/// those of a given file.
class ImageEncoder {
 public:
  struct Options {
    /// or "pixels", "torchscript:FILE", a name of the catalogue; several joined by "+", the features side by side
    std::string kind = "scatter";
    std::size_t height = 28;
    std::size_t width = 28;
    std::size_t channels = 1;  ///< 3 for colours, channel after channel
    double lower = 0;          ///< public range of a pixel; others are clamped
    double upper = 255;
    std::string sha256 = {};  ///< of a module: the file must have this hash to be run; empty: any
    int threads = 1;          ///< of a module: processes that rows are shared among
    std::string kept = {};  ///< a module's features are kept in this folder and found there again; empty: they are not
  };
  static Result<ImageEncoder> make(const Options& options);

  const Options& options() const { return options_; }
  std::size_t pixels() const { return options_.channels * options_.height * options_.width; }
  std::size_t features() const { return features_; }
  const EncoderIdentity& identity() const { return identity_; }
  /// Features of scatter, which come first; 0: there are none.
  std::size_t scattered() const { return parts_.front().scatter ? parts_.front().features : 0; }
  bool has_module() const { return parts_.back().module != nullptr; }

  /// `count` images of raw pixels, row-major; an image's features are a row. scatter: each of 27 groups of three
  /// channels (of each colour) has mean 0 and variance 1, over the root of the number of features. pixels: mean 0,
  /// length
  /// 1. A module: encode_image or forward, called with one image at a time (1 x channels x height x width, from 0 to
  /// 1); length 1. Of several side by side each is over the root of their number.
  Result<RowMajorMatrix> encode(const double* images, std::size_t count, int threads) const;

 private:
  struct Part {
    std::size_t features = 0;
    std::optional<Scatter> scatter = {};
    std::shared_ptr<const TorchEncoder> module = {};  // neither: pixels
  };
  explicit ImageEncoder(Options options) : options_(std::move(options)) {}
  Status add(const std::string& kind);
  Result<Part> module_of(const std::string& kind);
  Result<RowMajorMatrix> encode(const Part& part, const RowMajorMatrix& scaled, int threads) const;
  RowMajorMatrix scattered(const Scatter& scatter, const RowMajorMatrix& scaled, int threads) const;
  Options options_;
  EncoderIdentity identity_ = {};
  std::size_t features_ = 0;
  std::vector<Part> parts_;
};

/// Directions that matter in pictures of any kind: the principal components of encoded public images. Of encoders side
/// by side, those of scatter, which is first, and all features of the others as they are.
struct PublicBasis {
  Vector mean;   ///< of the public images' features
  Matrix basis;  ///< features x k, orthonormal
};
Result<PublicBasis> public_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads);

}  // namespace eigenveil
