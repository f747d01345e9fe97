// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace eigenveil::data {

enum class ElementKind : std::uint8_t { kFloat, kSigned, kUnsigned };

/// How a binary file stores one number. Integers beyond 2^53 are rounded to the nearest double.
struct ElementType {
  ElementKind kind = ElementKind::kFloat;
  std::size_t size = 8;
  bool big_endian = false;
};

/// Integers below this are exact as numbers of the type, and as doubles.
inline double exact_below(const ElementType& type) {
  return type.kind == ElementKind::kFloat && type.size == 4 ? 0x1p24 : 0x1p53;
}

template <class T, bool Swap>
double load_element(const char* from) {
  T value;
  if constexpr (!Swap || sizeof(T) == 1) {
    std::memcpy(&value, from, sizeof(T));
  } else {
    char reversed[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) reversed[i] = from[sizeof(T) - 1 - i];
    std::memcpy(&value, reversed, sizeof(T));
  }
  return static_cast<double>(value);
}

/// Calls `visit(load)` with the loader of the type, so that the loop inside `visit` is compiled for each type.
template <class Visit>
void with_loader(const ElementType& type, const Visit& visit) {
  const bool swap = type.big_endian != (std::endian::native == std::endian::big);
  const auto pick = [&]<class T>(std::type_identity<T>) {
    if (swap)
      visit([](const char* from) { return load_element<T, true>(from); });
    else
      visit([](const char* from) { return load_element<T, false>(from); });
  };
  if (type.kind == ElementKind::kFloat)
    return type.size == 4 ? pick(std::type_identity<float>{}) : pick(std::type_identity<double>{});
  const bool is_signed = type.kind == ElementKind::kSigned;
  switch (type.size) {
    case 1:
      return is_signed ? pick(std::type_identity<std::int8_t>{}) : pick(std::type_identity<std::uint8_t>{});
    case 2:
      return is_signed ? pick(std::type_identity<std::int16_t>{}) : pick(std::type_identity<std::uint16_t>{});
    case 4:
      return is_signed ? pick(std::type_identity<std::int32_t>{}) : pick(std::type_identity<std::uint32_t>{});
    default:
      return is_signed ? pick(std::type_identity<std::int64_t>{}) : pick(std::type_identity<std::uint64_t>{});
  }
}

}  // namespace eigenveil::data
