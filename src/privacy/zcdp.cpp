// SPDX-License-Identifier: Apache-2.0
#include "zcdp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace eigenveil::zcdp {
namespace {

/// (alpha - 1) ln(1 - 1/alpha) - ln alpha, with t = alpha - 1: the gain of the optimal conversion over Chernoff's.
double gain(double t) { return -t * std::log1p(1 / t) - std::log1p(t); }

/// The smallest value over t = alpha - 1 > 0. Every t gives a valid bound, so a coarse search costs tightness only.
template <class Value>
double least(Value value) {
  constexpr double kRange = 120;  // ln t
  constexpr int kCoarse = 960;
  double best_at = -kRange;
  double best = value(std::exp(best_at));
  for (int i = 1; i <= 2 * kCoarse; ++i) {
    const double at = kRange * (static_cast<double>(i) / kCoarse - 1);
    if (const double here = value(std::exp(at)); here < best) {
      best = here;
      best_at = at;
    }
  }
  double width = kRange / kCoarse;
  for (int section = 0; section < 30; ++section, width /= 2)
    for (const double at : {best_at - width, best_at + width})
      if (const double here = value(std::exp(at)); here < best) {
        best = here;
        best_at = at;
      }
  return best;
}

}  // namespace

// delta = e^{(alpha-1)(alpha rho - eps)} (1 - 1/alpha)^{alpha-1} / alpha, for every alpha > 1.

double log_delta(double rho, double epsilon) {
  if (!std::isfinite(rho)) return 0;
  return std::min(0.0, least([&](double t) { return t * ((1 + t) * rho - epsilon) + gain(t); }));
}

double epsilon(double rho, double log_delta) {
  if (!std::isfinite(rho)) return std::numeric_limits<double>::infinity();
  return std::max(0.0, least([&](double t) { return (1 + t) * rho + (gain(t) - log_delta) / t; }));
}

}  // namespace eigenveil::zcdp
