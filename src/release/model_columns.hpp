// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/data/schema.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// How to open a file that may have the columns of a model: what the caller left unstated, the model's columns say.
SourceOptions options_for_file(const std::vector<ColumnSpec>& specs, const SourceOptions& given);
/// How to read rows of these columns so that they are those of the model, in its order: by name if all of its names are
/// there; by position if there are no names, or the caller chose columns, and their number is right. `path` names the
/// rows in messages.
Result<SourceOptions> options_for_columns(const std::vector<ColumnSpec>& specs, const std::vector<std::string>& columns,
                                          const std::string& path, const SourceOptions& given);

}  // namespace eigenveil
