#pragma once

#include "eigenveil/federation/chain.hpp"

namespace eigenveil::federation {

/// A keyed hash of a file's bytes, and of what the system says about it: two files are the same, or they are not, and
/// nobody without the key learns more. Hexadecimal digits.
Result<std::string> data_key(const std::string& path, const Secret& key);

/// Size, time and place of the file, to see whether it was changed while it was read.
std::string file_state(const std::string& path);

}  // namespace eigenveil::federation
