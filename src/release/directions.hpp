// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// The directions that a model projects rows on, whatever the model calls them, and the number that goes with each.
struct DirectionSet {
  Matrix rows;                     ///< one direction per row; where there are two views, those of x, then those of y
  std::vector<std::string> names;  ///< of the scores: pc1, x1, ld1, ...
  Vector values;                   ///< one per direction; empty if the kind has none
  Vector shift = {};               ///< added to the scores, one per direction; empty: nothing is
};

/// Validates. Refuses a model that projects nothing, too.
Result<DirectionSet> directions_of(const Model& model, const std::string& where);

}  // namespace eigenveil
