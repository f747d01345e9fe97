// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/base/types.hpp"
#include "eigenveil/release/kinds.hpp"

namespace eigenveil {

/// Values against their number as an inline SVG, in the words of their kind. `noise_edge` draws a dashed line at the
/// largest value that noise alone would typically produce.
std::string scree_svg(const Vector& values, std::optional<double> noise_edge, const ModelKind& kind);

}  // namespace eigenveil
