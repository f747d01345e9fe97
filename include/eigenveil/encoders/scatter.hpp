// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// The 2-D wavelet scattering transform (Mallat 2012) of grey images: Morlet wavelets of J = 2 scales and L = 8
/// orientations, orders 0 to 2. A fixed transform without weights; it never sees data but the image it maps.
///   order 0   x * phi                                (1 channel)
///   order 1   |x * psi_{j,l}| * phi                  (16)
///   order 2   ||x * psi_{0,l}| * psi_{1,m}| * phi    (64)
/// Images are mirrored at their edges to a multiple of four that leaves two pixels on each side (28 -> 32) and
/// convolved on the torus; what has passed a wavelet of scale j is kept at every 2^j-th pixel, and phi's output at
/// pixels 2, 6, 10, ...
class Scatter {
 public:
  static constexpr std::size_t kScales = 2;
  static constexpr std::size_t kAngles = 8;
  static constexpr std::size_t kChannels = 81;

  /// Height and width: 4 to 1024 pixels each.
  static Result<Scatter> make(std::size_t height, std::size_t width);

  std::size_t pixels() const;
  std::size_t positions() const;  ///< of a channel
  std::size_t features() const { return kChannels * positions(); }

  /// `count` images, row-major, one after the other; features of an image are channel by channel. Every image by
  /// itself: the same numbers whatever its neighbours and the threads.
  void transform(const double* images, std::size_t count, double* features, int threads) const;

  /// One filter on the padded image in space, as it is convolved there (for tests): rows x columns, real and
  /// imaginary.
  struct Filter {
    Matrix real;
    Matrix imaginary;
  };
  static Filter morlet(std::size_t rows, std::size_t columns, std::size_t scale, std::size_t angle);

 private:
  struct Plans;
  explicit Scatter(std::shared_ptr<const Plans> plans) : plans_(std::move(plans)) {}
  std::shared_ptr<const Plans> plans_;
};

}  // namespace eigenveil
