// SPDX-License-Identifier: Apache-2.0
// The commands that fit a model, one line each, and their forecasts.
#include "described.hpp"

namespace eigenveil {
DescribedFit regress_fit();
}

namespace eigenveil::app {

Command pca_command(CLI::App& program);
Command covariance_command(CLI::App& program);
Command cca_command(CLI::App& program);
Command fda_command(CLI::App& program);
Command sir_command(CLI::App& program);
Command gep_command(CLI::App& program);

namespace {

struct FitCommand {
  Command (*add)(CLI::App& program);
  bool for_sites = true;  ///< rows that several sites hold will do, too
};

constexpr FitCommand kFits[] = {{pca_command}, {covariance_command}, {cca_command},
                                {fda_command}, {sir_command},        {gep_command, false}};

constexpr DescribedFit (*kDescribed[])() = {regress_fit};

}  // namespace

std::vector<Command> fit_commands(CLI::App& program, bool for_sites) {
  std::vector<Command> commands;
  for (const FitCommand& fit : kFits)
    if (fit.for_sites || !for_sites) commands.push_back(fit.add(program));
  for (const auto& fit : kDescribed) commands.push_back(described_command(program, fit()));
  return commands;
}

std::vector<Command> fit_plan_commands(CLI::App& program) {
  std::vector<Command> commands;
  for (const auto& fit : kDescribed) commands.push_back(described_plan_command(*program.get_subcommand("plan"), fit()));
  return commands;
}

}  // namespace eigenveil::app
