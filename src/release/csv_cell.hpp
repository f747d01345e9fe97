// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace eigenveil {

/// A text as a cell of a CSV file. Quoted where RFC 4180 asks for it. A text that a spreadsheet would take for a
/// formula (it begins with =, +, -, @, a tab or a carriage return) gets an apostrophe before it, unless it is a plain
/// number.
std::string csv_cell(const std::string& text);

}  // namespace eigenveil
