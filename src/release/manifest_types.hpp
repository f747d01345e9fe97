// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// The manifest of a file that anybody may have made: JSON of bounded depth, an object, in which every key that this
/// program knows has the type that it reads there. What passes can be read without further care for types.
Result<nlohmann::json> manifest_from_text(const std::string& text, const std::string& where);

}  // namespace eigenveil
