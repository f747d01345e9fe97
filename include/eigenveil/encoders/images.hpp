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
    std::string kind = "scatter";  ///< or "pixels" or "torchscript:FILE"
    std::size_t height = 28;
    std::size_t width = 28;
    std::size_t channels = 1;  ///< 3 for colours: torchscript alone, channel after channel
    double lower = 0;          ///< public range of a pixel; others are clamped
    double upper = 255;
    std::string sha256 = {};  ///< torchscript: the file must have this hash to be run; empty: any
    int threads = 1;          ///< torchscript: processes that rows are shared among
  };
  static Result<ImageEncoder> make(const Options& options);

  const Options& options() const { return options_; }
  std::size_t pixels() const { return options_.channels * options_.height * options_.width; }
  std::size_t features() const { return features_; }
  const EncoderIdentity& identity() const { return identity_; }

  /// `count` images of raw pixels, row-major; an image's features are a row. scatter: each of 27 groups of three
  /// channels has mean 0 and variance 1, over the root of the number of features. pixels: mean 0, length 1.
  /// torchscript: encode_image or forward of the module, called with one image at a time (1 x channels x height x
  /// width, from 0 to 1); length 1.
  Result<RowMajorMatrix> encode(const double* images, std::size_t count, int threads) const;

 private:
  ImageEncoder(Options options, std::size_t features)
      : options_(std::move(options)), identity_{options_.kind}, features_(features) {}
  static Result<ImageEncoder> with_module(const Options& options, const std::string& path);
  Options options_;
  EncoderIdentity identity_;
  std::size_t features_;
  std::shared_ptr<const TorchEncoder> module_;
  std::optional<Scatter> scatter_;
};

/// Directions that matter in pictures of any kind: the principal components of encoded public images.
struct PublicBasis {
  Vector mean;   ///< of the public images' features
  Matrix basis;  ///< features x k, orthonormal
};
Result<PublicBasis> public_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads);

}  // namespace eigenveil
