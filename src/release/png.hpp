// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil {

/// Values drawn from blue (negative) over white (zero) to red (positive), symmetric about zero, as the bytes of an
/// 8-bit palette PNG. `values` is row-major, height x width. All zeros give a white picture.
std::string diverging_png(const std::vector<double>& values, std::size_t height, std::size_t width);

/// Standard alphabet, padded (RFC 4648, section 4).
std::string base64(std::string_view bytes);

}  // namespace eigenveil
