// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <vector>

#include "eigenveil/privacy/event.hpp"

/// The privacy loss of one event: its moment generating function and its pessimistic discretisation.
namespace eigenveil::loss {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// ln(e^a + e^b)
double log_add(double a, double b);

/// Which of the two neighbours plays P. Only the Poisson-subsampled Gaussian is not symmetric.
enum class Direction {
  kRemove,  ///< P = (1-q) N(0, sigma^2) + q N(1, sigma^2), Q = N(0, sigma^2)
  kAdd,     ///< P = N(0, sigma^2), Q = (1-q) N(0, sigma^2) + q N(1, sigma^2)
};

/// ln E_P e^{theta L} for theta >= 0, over outputs but the P-mass e^log_tail of largest loss, which `discretise` cuts
/// off too. Accurate enough to choose a tilt; no bound rests on it.
double cumulant(const Mechanism& mechanism, Direction direction, double theta, double log_tail);

/// The square of the length on which the loss varies: its variance, but for a pure event never below min(eps, 1)^2.
double squared_scale(const Mechanism& mechanism, Direction direction);

struct Grid {
  double step;         ///< losses are multiples of it
  double theta;        ///< tilt: masses are stored as p e^{theta loss - log_scale}
  double log_tail;     ///< P-mass up to e^log_tail may be cut off above and counted as infinite loss
  double log_cut_low;  ///< P-mass up to e^log_cut_low may be cut off below and moved up
};

/// mass[i] is the tilted mass at loss (first + i) * step.
struct Masses {
  long long first = 0;
  std::vector<double> mass;
  double log_scale = 0;
  double log_infinite = 0;  ///< ln of the mass at infinite loss
};

/// How many cells `discretise` would fill; infinity if a grid index would no longer be exact.
double cells(const Mechanism& mechanism, Direction direction, const Grid& grid);

/// A pair of laws on the grid that dominates the event's own (connect the dots).
Masses discretise(const Mechanism& mechanism, Direction direction, const Grid& grid);

}  // namespace eigenveil::loss
