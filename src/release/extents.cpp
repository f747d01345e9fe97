// SPDX-License-Identifier: Apache-2.0
#include "extents.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eigenveil {
namespace {

std::string in_words(const NamedArray& array) {
  return array.is_vector ? fmt::format("{} numbers", array.values.size())
                         : fmt::format("{} x {} numbers", array.values.rows(), array.values.cols());
}

/// "a vector of 4", "2 x 4", "any x 4"
std::string expected_in_words(const Extents& known, const ModelArray& shape) {
  const auto length = [&](Extent extent) {
    const auto fixed = known.of(extent);
    return fixed ? fmt::format("{}", *fixed) : std::string("any");
  };
  if (shape.columns == Extent::kNone) return fmt::format("a vector of {}", length(shape.rows));
  if (!known.of(shape.rows) && !known.of(shape.columns)) return "at least one row and one column";
  return fmt::format("{} x {}", length(shape.rows), length(shape.columns));
}

/// Nothing is fixed by an array that does not fit.
bool fits(const NamedArray& array, const ModelArray& shape, Extents& known) {
  if (array.values.size() == 0 || array.is_vector != (shape.columns == Extent::kNone)) return false;
  Extents after = known;
  if (!after.agree(shape.rows, array.values.rows())) return false;
  if (shape.columns != Extent::kNone && !after.agree(shape.columns, array.values.cols())) return false;
  known = after;
  return true;
}

}  // namespace

std::optional<Eigen::Index> Extents::of(Extent extent) const {
  if (extent == Extent::kOne) return 1;
  const auto& length = lengths_[static_cast<std::size_t>(extent)];
  if (length || extent != Extent::kFeatures) return length;
  const auto first = of(Extent::kFirstView);
  const auto second = of(Extent::kSecondView);
  return first && second ? std::optional(*first + *second) : std::nullopt;
}

bool Extents::agree(Extent extent, Eigen::Index length) {
  if (!of(extent)) lengths_[static_cast<std::size_t>(extent)] = length;
  return *of(extent) == length;
}

Result<Extents> extents_of(const Model& model, const std::string& where) {
  const ModelKind& kind = kind_of(model.manifest);
  Extents known;
  for (const ModelArray& shape : kind.arrays) {
    const auto array = std::find_if(model.arrays.begin(), model.arrays.end(),
                                    [&](const NamedArray& one) { return one.name == shape.name; });
    if (array == model.arrays.end()) {
      if (shape.optional) continue;
      return bad_input(fmt::format("{}: the array '{}' is missing.", where, shape.name));
    }
    if (!fits(*array, shape, known))
      return bad_input(fmt::format("{}: the array '{}' has {}, expected {} to fit the others.", where, shape.name,
                                   in_words(*array), expected_in_words(known, shape)));
  }
  return known;
}

}  // namespace eigenveil
