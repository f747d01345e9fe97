// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Rows belong to people, and a release protects a person with all their rows: src/rows/people.proof.md.
struct PersonOptions {
  std::string column;          ///< the id: a name or 1-based position. Never a feature, never released
  std::size_t least_rows = 1;  ///< M: a row of a person of m rows weighs 1 / max(M, m); 1: people count alike
  std::optional<std::size_t> most_rows = {};  ///< keep so many rows of a person, chosen by chance
  bool missing_is_own = false;                ///< a row without an id is a person of its own; false: it is refused
  bool stated = false;  ///< no rows are read: whoever computed the matrices states what a person can change
};

/// Refuses what nobody could have meant.
Status check(const PersonOptions& person);

}  // namespace eigenveil
