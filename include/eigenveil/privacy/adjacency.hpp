// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Which data sets are neighbours. Every sensitivity is a function of it.
enum class Adjacency {
  kReplaceOne,    ///< one row is replaced by another; the number of rows is public
  kAddRemoveOne,  ///< one row is added or removed; the number of rows is private
};

std::string_view name(Adjacency adjacency);
Result<Adjacency> adjacency_from_name(std::string_view text);

}  // namespace eigenveil
