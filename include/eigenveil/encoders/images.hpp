#pragma once

#include <optional>
#include <string>

#include "eigenveil/encoders/scatter.hpp"

namespace eigenveil {

/// Turns a grey image into features of length one at most. Public: no weights, a function of one image alone.
class ImageEncoder {
 public:
  struct Options {
    std::string kind = "scatter";  ///< or "pixels"
    std::size_t height = 28;
    std::size_t width = 28;
    double lower = 0;  ///< public range of a pixel; others are clamped
    double upper = 255;
  };
  static Result<ImageEncoder> make(const Options& options);

  const Options& options() const { return options_; }
  std::size_t pixels() const { return options_.height * options_.width; }
  std::size_t features() const { return scatter_ ? scatter_->features() : pixels(); }

  /// `count` images of raw pixels, row-major; an image's features are a row. scatter: each of 27 groups of three
  /// channels has mean 0 and variance 1, over the root of the number of features. pixels: mean 0, length 1.
  RowMajorMatrix encode(const double* images, std::size_t count, int threads) const;

 private:
  ImageEncoder(Options options, std::optional<Scatter> scatter)
      : options_(std::move(options)), scatter_(std::move(scatter)) {}
  Options options_;
  std::optional<Scatter> scatter_;
};

/// Directions that matter in pictures of any kind: the principal components of encoded public images.
struct PublicBasis {
  Vector mean;   ///< of the public images' features
  Matrix basis;  ///< features x k, orthonormal
};
Result<PublicBasis> public_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads);

}  // namespace eigenveil
