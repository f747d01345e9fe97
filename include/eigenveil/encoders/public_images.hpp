// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// Made-up grey images in [0, 1]: every second one of random strokes (bent, of pen width), the others of filled and
/// shaded polygons and ellipses. They stand for "small pictures" where a public data set would, and are the same
/// whenever and wherever they are drawn. Row-major, an image per row. With three channels black and white become two
/// colours of each image's own, channel after channel.
RowMajorMatrix public_images(std::size_t count, std::size_t height, std::size_t width, std::size_t channels = 1);

}  // namespace eigenveil
