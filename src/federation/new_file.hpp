#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// Writes a file that was not there before, complete or not at all, readable by whom the mode says and never, not even
/// for a moment, by others.
Status write_new_file(const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace eigenveil::federation
