// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/described.hpp"
#include "options.hpp"

namespace eigenveil::app {

Command described_command(CLI::App& program, const DescribedFit& fit);
Command described_plan_command(CLI::App& plan, const DescribedFit& fit);

}  // namespace eigenveil::app
