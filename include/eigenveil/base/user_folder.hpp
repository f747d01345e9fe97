// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace eigenveil {

/// Where the program keeps what belongs to a user: $XDG_DATA_HOME/eigenveil, by default ~/.local/share/eigenveil.
std::filesystem::path user_folder();

}  // namespace eigenveil
