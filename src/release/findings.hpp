// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/release/kinds.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// What may be believed about a direction.
enum class Worth : std::uint8_t { kUnknown, kNoise, kWeak, kPlane, kHolds };

/// The numbers of a model's directions with what is known about their errors. An array that the model does not have,
/// or of another length, is empty.
struct Findings {
  Vector values;    ///< as released
  Vector estimate;  ///< with the bias of the noise taken out: what the bands are about
  Vector low;
  Vector high;
  Vector angle;         ///< expected, to the true direction, in degrees
  Vector shares;        ///< of the total variation
  Matrix deviation;     ///< of the entries of the directions, one direction per row, as `directions_of` has them
  bool judged = false;  ///< every direction has a verdict
  std::vector<Worth> verdicts;

  std::vector<Eigen::Index> last;  ///< of the run of directions that each was found with, from 0

  /// The best guess: without the noise's bias, if that is known.
  const Vector& shown() const { return estimate.size() > 0 ? estimate : values; }
  /// An entry of direction k is about this many times as large as was released: cos of the expected angle.
  double shrunk(Eigen::Index k) const;
  bool empty() const { return values.size() == 0; }
  Worth verdict(Eigen::Index k) const { return judged ? verdicts[k] : Worth::kUnknown; }
  bool banded() const { return low.size() > 0 && high.size() > 0; }
};

Findings findings_of(const Model& model);

/// One word, also a class of the style sheet: holds, plane, weak, noise.
std::string_view name(Worth verdict);

/// "Components 1 to 3 hold. Components 4 and 5 hold only as a plane. ..." Nothing without verdicts or a noise line.
std::string found_in_words(const Findings& found, const ModelKind& kind, const nlohmann::json& manifest);

}  // namespace eigenveil
