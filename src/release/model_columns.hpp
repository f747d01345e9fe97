#pragma once

#include <string>
#include <vector>

#include "eigenveil/data/schema.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// How to open `path` so that its columns are those of a model, in the model's order: by name if the file has all of
/// the names; by position if the file has no names, or the caller chose columns, and their number is right.
Result<SourceOptions> options_for_columns(const std::vector<ColumnSpec>& specs, const std::string& path,
                                          const SourceOptions& given);
/// The same for something that has these columns. `path` names it in messages.
Result<SourceOptions> options_for_columns(const std::vector<ColumnSpec>& specs, const std::vector<std::string>& columns,
                                          const std::string& path, const SourceOptions& given);

}  // namespace eigenveil
