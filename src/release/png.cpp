// SPDX-License-Identifier: Apache-2.0
#include "png.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace eigenveil {
namespace {

constexpr int kLevels = 127;  ///< on each side of zero

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24U), static_cast<char>(value >> 16U), static_cast<char>(value >> 8U),
          static_cast<char>(value)};
}

/// Length, type, data, CRC of type and data (PNG specification, section 5.3).
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

/// 2 * kLevels + 1 colours; three stops on each side keep the middle pale and the ends dark.
std::string palette() {
  using Colour = std::array<double, 3>;
  constexpr std::array<Colour, 7> kStops = {
      {{24, 58, 112}, {62, 124, 184}, {168, 205, 229}, {250, 250, 250}, {246, 189, 162}, {205, 88, 74}, {112, 14, 36}}};
  std::string colours;
  for (int level = 0; level <= 2 * kLevels; ++level) {
    const double at = static_cast<double>(level) / (2 * kLevels) * (kStops.size() - 1);
    const std::size_t stop = std::min(static_cast<std::size_t>(at), kStops.size() - 2);
    const double part = at - static_cast<double>(stop);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const double value = (1 - part) * kStops[stop][channel] + part * kStops[stop + 1][channel];
      colours += static_cast<char>(static_cast<unsigned char>(std::lround(value)));
    }
  }
  return colours;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
            static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
  packed.resize(size);
  return packed;
}

}  // namespace

std::string diverging_png(const std::vector<double>& values, std::size_t height, std::size_t width) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  std::string pixels;
  pixels.reserve(height * (width + 1));
  for (std::size_t row = 0; row < height; ++row) {
    pixels += '\0';  // filter type of the line: none
    for (std::size_t column = 0; column < width; ++column) {
      const double share = largest > 0 ? values[row * width + column] / largest : 0;
      pixels += static_cast<char>(static_cast<unsigned char>(kLevels + std::lround(kLevels * share)));
    }
  }
  constexpr char kBitDepth = 8;
  constexpr char kPalette = 3;
  const std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                             big_endian(static_cast<std::uint32_t>(height)) +
                             std::string({kBitDepth, kPalette, '\0', '\0', '\0'});
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("PLTE", palette()) + chunk("IDAT", deflated(pixels)) +
         chunk("IEND", "");
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t taken = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < taken ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= taken ? kAlphabet[group >> (18U - 6U * i) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace eigenveil
