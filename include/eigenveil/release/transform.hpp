// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "eigenveil/data/given_rows.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// What the names of a model's columns say about the first line of a CSV file: header_named_by.
HeaderRule header_named_by_model(const Model& model);

/// Projects every row of a data file on the directions of a model (components; x_weights and y_weights; scalings; ...):
///   score = ((clamp(row) - offset) * scale - mean) . directions^T
/// and writes the scores as .csv (header pc1, pc2, ...; x1, ..., y1, ...; ld1, ...) or .npy (rows x scores, float64),
/// to a temporary file that is renamed at the end. Scores describe single rows: they are not private. A row with a
/// missing value is an error that names row and column. Returns the number of rows written.
Result<std::size_t> transform(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                              const std::string& out_path, const std::function<void(double)>& progress = {});

/// Writes what a model predicts for every row. fda: the class, as .csv with the header "class": the nearest class mean
/// among the scores, priors counted in. regress: as `transform`.
Result<std::size_t> predict(const Model& model, const std::string& data_path, const SourceOptions& source_options,
                            const std::string& out_path, const std::function<void(double)>& progress = {});

/// The same without a file to write: all scores, or all labels, at once.
Result<RowMajorMatrix> scores(const Model& model, GivenRows& rows);
Result<RowMajorMatrix> scores(const Model& model, const std::string& data_path, const SourceOptions& options);
Result<std::vector<std::string>> predictions(const Model& model, GivenRows& rows);
Result<std::vector<std::string>> predictions(const Model& model, const std::string& data_path,
                                             const SourceOptions& options);

}  // namespace eigenveil
