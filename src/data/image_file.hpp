// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "eigenveil/base/result.hpp"

namespace eigenveil::data {

/// .png, .jpg or .jpeg, in any case.
bool is_image_name(const std::string& name);

struct ImageHeader {
  std::size_t height = 0;
  std::size_t width = 0;
  bool colour = false;
};

/// Refuses what `read_image` would refuse by the header alone: too many pixels, CMYK, a wrong ending.
Result<ImageHeader> image_header(const std::string& path);

/// The pixels of an image of that height and width, or with none of any that has so many, from 0 to 255, row after row;
/// in `colour` all of red, then of green, then of blue. 16-bit values are divided by 257. Grey is (19595 R + 38470 G +
/// 7471 B + 32768) >> 16 of whole numbers (ITU-R BT.601), and what is transparent lies over black. Gamma, profiles and
/// EXIF orientation are not applied.
Status read_image(const std::string& path, const std::optional<std::pair<std::size_t, std::size_t>>& shape,
                  std::size_t pixels, bool colour, double* out);

}  // namespace eigenveil::data
