// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace eigenveil::app {

/// What the program says when it is given nothing.
extern const char* const kWelcome;

/// Help whose descriptions are wrapped at the width of the terminal.
std::shared_ptr<CLI::Formatter> wrapped_help();

/// The command that words name, such as {"ledger", "create"}; nullptr if there is none.
CLI::App* command_named(CLI::App& program, const std::vector<std::string>& words);

/// All commands below an app, in order, those below them included.
std::vector<const CLI::App*> commands_below(const CLI::App& app);

/// Its names from the program down: "eigenveil ledger create".
std::string full_name(const CLI::App& app);

}  // namespace eigenveil::app
