#pragma once

#include <cstdint>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// A file outside of all backups that knows how far the ledger had come. A ledger that is behind it was restored from a
/// copy, and has forgotten charges.
Status check_anchor(const std::string& path, std::uint64_t generation);
/// On disk before it returns. No path: nothing is kept.
Status write_anchor(const std::string& path, std::uint64_t generation);

}  // namespace eigenveil::federation
