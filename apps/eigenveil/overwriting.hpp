// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "eigenveil/job/file_uses.hpp"

namespace eigenveil::app {

constexpr const char* kForceHelp = "Replace files that are there already (never through a link)";

/// Gives a command that writes files --force, if it has none.
void add_force(CLI::App& command);

/// Before a command begins: nothing that it writes may be anything else that its options name, or its ledger; nor a
/// file that is there, without --force.
Status check_overwriting(const CLI::App& command);

/// Refuses files that are there already.
Status check_new(const std::vector<FileUse>& written);

}  // namespace eigenveil::app
