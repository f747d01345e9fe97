// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/verdict/verdict.hpp"
#include "remember.hpp"

namespace eigenveil {

/// What a power method that filters rows and remembers its products met and released, to run it again on made-up rows:
/// Gaussian ones, shortened and filtered as the real ones were.
struct FilteredRun {
  std::size_t columns;
  std::size_t components;
  double rows;
  double tau;                       ///< of an entry of the mean's error
  std::optional<double> radius;     ///< that rows were shortened to, where a search found it
  double above;                     ///< share of the rows that the filter finds too long
  bool drop;                        ///< such rows count for nothing, or less
  std::vector<std::size_t> widths;  ///< of each round's block
  bool level_unfiltered = false;    ///< it was seen before the first product, without a filter
  std::vector<double> sigmas = {};  ///< of each round's noise
  Vector values = {};               ///< released: of filtered rows
  Matrix vectors = {};              ///< d x k
  double level = 0;                 ///< of all other directions, in the first product

  Result<Verdict> judge() const;
};

/// The level of all directions but the components, as the start saw it.
double level_beside(const RememberedProducts& memory, const Matrix& start);

}  // namespace eigenveil
