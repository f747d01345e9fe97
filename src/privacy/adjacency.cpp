// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/adjacency.hpp"

#include <fmt/format.h>

namespace eigenveil {

std::string_view name(Adjacency adjacency) {
  return adjacency == Adjacency::kReplaceOne ? "replace-one" : "add-remove-one";
}

Result<Adjacency> adjacency_from_name(std::string_view text) {
  for (Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne})
    if (text == name(adjacency)) return adjacency;
  return usage_error(fmt::format("`adjacency` must be replace-one or add-remove-one, but is '{}'", text));
}

}  // namespace eigenveil
