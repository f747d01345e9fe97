// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/data/schema.hpp"

namespace eigenveil::data {

/// What is wrong with one column of a schema, in words; nothing if it is sound.
std::optional<std::string> problem_of(const ColumnSpec& spec);

}  // namespace eigenveil::data
