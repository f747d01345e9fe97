// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil::ledger {

/// The 32 bytes in the file. `make`: one that is missing is drawn and stored (0600), whole or not at all, and of
/// several processes that do so at once one wins.
Result<std::string> load_key(const std::string& path, bool make);

}  // namespace eigenveil::ledger
