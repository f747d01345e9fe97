// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace eigenveil::app {

/// "there is no --epsilom; did you mean --epsilon?" about the first word that the command it was given to does not
/// know; empty if nothing is near. `words`: the command line without the program's name.
std::string did_you_mean(const CLI::App& program, const std::vector<std::string>& words);

}  // namespace eigenveil::app
