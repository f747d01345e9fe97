// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "wire.pb.h"

namespace eigenveil::federation {

/// What the columns of a planned ask count, if it has any.
enum class Width : std::uint8_t { kNone, kDirections, kClasses };

/// What is to be known about a kind of question: one row per kind, in the order of the protocol.
struct KindFacts {
  wire::v2::Kind kind;
  const char* name;  ///< in policies
  Width width = Width::kNone;
  bool grid = false;
  bool classes = false;
  /// The size of an answer in words: {0} columns of the rows, {1} columns of the ask, {2} classes, {3} cells of the
  /// grid.
  const char* size = "nothing";
  bool moves_rows = false;
};

inline constexpr std::array<KindFacts, wire::v2::Kind_ARRAYSIZE> kKinds = {{
    {wire::v2::KIND_UNKNOWN, "unknown"},
    {wire::v2::GRAM, "gram", Width::kNone, false, false, "{0} x {0} numbers"},
    {wire::v2::APPLY, "apply", Width::kDirections, false, false, "{0} x at most {1} numbers"},
    {wire::v2::CLASS_SUMS, "class_sums", Width::kNone, false, true, "{0} x {2} numbers"},
    {wire::v2::CLASS_COUNTS, "class_counts", Width::kNone, false, true, "{2} counts"},
    {wire::v2::SQUARED_NORMS, "squared_norms", Width::kNone, false, false, "one number"},
    {wire::v2::PROJECTED_GRAM, "projected_gram", Width::kDirections, false, false, "at most {1} x {1} numbers"},
    {wire::v2::SOFTMAX_GRADIENT, "softmax_gradient", Width::kClasses, false, false, "{0} x at most {1} numbers"},
    {wire::v2::NORM_COUNTS, "norm_counts", Width::kDirections, true, false, "counts of rows in at most {3} cells"},
    {wire::v2::SEARCH, "search", Width::kDirections, true, false, "counts of rows in at most {3} cells"},
    {wire::v2::PRODUCT, "product", Width::kDirections, true, false, "{0} x at most {1} numbers"},
    {wire::v2::RECENTER, "recenter", Width::kNone, false, false, "moves rows, answers nothing", true},
    {wire::v2::MAP, "map", Width::kDirections, false, false, "moves rows, answers nothing", true},
}};

/// A kind that the protocol has and the table forgets, or has elsewhere, does not compile.
constexpr bool every_kind_has_its_row() {
  for (int i = 0; i < wire::v2::Kind_ARRAYSIZE; ++i)
    if (kKinds[i].kind != i) return false;
  return true;
}
static_assert(every_kind_has_its_row());

/// A number of no kind is unknown.
inline const KindFacts& facts(wire::v2::Kind kind) { return kKinds[wire::v2::Kind_IsValid(kind) ? kind : 0]; }

}  // namespace eigenveil::federation
