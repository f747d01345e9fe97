// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/data/source.hpp"

namespace eigenveil::app {

/// Stops where nobody has stated whether the first line of a CSV file holds column names: shows the line to the
/// operator on standard error, and the two commands that settle it.
Status header_stated(const std::string& data, const SourceOptions& options);

/// The same, but asks a person who sits at a terminal; what was answered is put into the options.
Status state_header(const std::string& data, SourceOptions& options);

}  // namespace eigenveil::app
