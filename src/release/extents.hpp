// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/release/kinds.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// How long the arrays of a model are.
class Extents {
 public:
  /// Nothing where no array of the model's kind has that extent.
  std::optional<Eigen::Index> of(Extent extent) const;
  /// Fixes an extent, or tells whether it is the same again.
  bool agree(Extent extent, Eigen::Index length);

 private:
  std::optional<Eigen::Index> lengths_[static_cast<std::size_t>(Extent::kGroups) + 1];
};

/// Refuses a model that lacks an array of its kind, or whose arrays do not fit together. `where` begins the message.
Result<Extents> extents_of(const Model& model, const std::string& where);

}  // namespace eigenveil
