// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "eigenveil/base/result.hpp"

namespace eigenveil::app {

/// Before a command begins: nothing that it writes may be anything else that its options name, or its ledger.
Status check_overwriting(const CLI::App& command);

}  // namespace eigenveil::app
