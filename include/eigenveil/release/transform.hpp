#pragma once

#include <functional>
#include <string>

#include "eigenveil/data/source.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// Projects every row of a data file on the components of a model:
///   score = ((clamp(row) - offset) * scale - mean) . components^T
/// and writes the scores as .csv (header pc1, pc2, ...) or .npy (rows x components, float64), streamed, to a
/// temporary file that is renamed at the end. Scores describe single rows: they are not private.
/// A row with a missing value is an error that names row and column. Returns the number of rows written.
Result<std::size_t> transform(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                              const std::string& out_path, const std::function<void(double)>& progress = {});

}  // namespace eigenveil
