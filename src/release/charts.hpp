// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/release/kinds.hpp"
#include "findings.hpp"

namespace eigenveil {

/// Values against their number as an inline SVG, with their bands, coloured by their verdicts. `noise_edge` shades what
/// noise alone would typically produce.
std::string scree_svg(const Findings& found, std::optional<double> noise_edge, const ModelKind& kind);

/// The entries of two directions as arrows; the longest have their names. `axes` are the directions' names.
std::string biplot_svg(const Vector& first, const Vector& second, const std::vector<std::string>& names,
                       const std::vector<std::string>& axes);

/// A symmetric matrix in colours, blue below zero and red above, with names where they can be read.
std::string heatmap_svg(const Matrix& values, const std::vector<std::string>& names, const std::string& what);

/// Where groups lie along the first one or two directions: one group per row of `means`, areas by `weights`.
std::string centroids_svg(const Matrix& means, const Vector& weights, const std::vector<std::string>& names,
                          const std::vector<std::string>& axes);

/// How many rows lie in each cell of a grid, as a density: `counts` has one row per cell of the first axis, with noise
/// of that deviation; what is less than twice it is blank. `most` has the full colour. Edges: 2 x (cells + 1).
std::string density_svg(const Matrix& counts, const Matrix& edges, double deviation, double most,
                        const std::string& title, const std::vector<std::string>& axes);

/// Who holds rows, what each adds to its sums and what the coordinator sees.
std::string federation_svg(const std::vector<std::string>& sites, const std::string& added, const std::string& seen);

}  // namespace eigenveil
