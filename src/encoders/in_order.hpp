// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

/// Sums from the first number to the last. A vectorised sum begins at the first aligned address, so that its last
/// digits depend on where in memory a row lies, and with that on the rows before it.
namespace eigenveil {

inline double sum_in_order(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum;
}

inline double squares_in_order(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

/// To length one, whatever the scale; zero stays zero.
inline void make_unit(std::span<double> x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::fabs(value));
  if (!(largest > 0)) return;
  for (double& value : x) value /= largest;
  const double length = std::sqrt(squares_in_order(x));
  for (double& value : x) value /= length;
}

}  // namespace eigenveil
