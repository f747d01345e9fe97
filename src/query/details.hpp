// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/query.hpp"

namespace eigenveil {

Status check_directions(const Directions& X, std::size_t columns);
Status check_grid(const std::vector<double>& grid);

/// counts[j] = number of rows above grid point j: a row in cell c is above exactly the points before c.
PrivateCounts counts_above(const std::vector<std::int64_t>& cells, const Lattice& lattice);

/// For the arithmetic that states a sensitivity.
inline double round_up(double value) { return value * (1.0 + 0x1p-50); }

}  // namespace eigenveil
