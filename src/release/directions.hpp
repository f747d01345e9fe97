#pragma once

#include <string>
#include <vector>

#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// The directions that a model projects rows on, whatever the model calls them, and the number that goes with each.
struct DirectionSet {
  Matrix rows;                     ///< one direction a row
  std::vector<std::string> names;  ///< of the scores: pc1, x1, ld1, ...
  Vector values;                   ///< eigenvalues or correlations, one a direction; may be empty
  bool correlations;
};

/// Refuses a model that has none, or whose arrays do not fit together.
Result<DirectionSet> directions_of(const Model& model, const std::string& where);

}  // namespace eigenveil
