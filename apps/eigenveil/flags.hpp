// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil::app {

/// "--row-bound", ...: the options of a command, without those of the commands below it.
std::vector<std::string> flags_of(const CLI::App& command);
/// The names of the commands right below it.
std::vector<std::string> commands_of(const CLI::App& command);

/// Keeps the names of all options of all commands.
void remember_flags(const CLI::App& program);

/// What the library says, as somebody at a terminal types it: `row_bound` becomes --row-bound. What stands in backticks
/// and is no option of the program stays as it is.
std::string with_flags(std::string_view text);

}  // namespace eigenveil::app
