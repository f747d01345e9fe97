#pragma once

#include <string>

#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// What rows are projected with must fit together: components K x d, mean, offset and scale of length d, d names in
/// the manifest, and columns (if listed) that make d features.
Status validate_projection(const Model& model, const std::string& where);

}  // namespace eigenveil
