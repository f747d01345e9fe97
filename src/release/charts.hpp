#pragma once

#include <optional>
#include <string>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// Eigenvalues against their number as an inline SVG. `noise_edge` draws a dashed line at the largest eigenvalue
/// that noise alone would typically produce.
std::string scree_svg(const Vector& eigenvalues, std::optional<double> noise_edge);

}  // namespace eigenveil
