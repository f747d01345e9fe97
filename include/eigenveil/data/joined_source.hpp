// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// Several sources side by side: row i has the columns of every part's row i. The parts must have equally many rows.
/// `names`: of all columns, in order.
Result<std::unique_ptr<RowSource>> joined_source(std::vector<std::unique_ptr<RowSource>> parts,
                                                 std::vector<std::string> names);

/// One column of text, whose values have to be listed as categories.
std::unique_ptr<RowSource> text_source(std::vector<std::string> values, std::string name);

}  // namespace eigenveil
