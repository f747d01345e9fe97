// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// SHA-256 in hex.
std::string sha256_of(const std::string& bytes);
/// Of the contents of files, one after the other.
Result<std::string> sha256_of_files(const std::vector<std::string>& paths);

}  // namespace eigenveil
