// SPDX-License-Identifier: Apache-2.0
#include "normal.hpp"

#include <cmath>
#include <numbers>

namespace eigenveil::normal {
namespace {

constexpr double kFractionFrom = 2;  // Laplace's continued fraction converges fast from here on

/// c = 1/(x + 2/(x + 3/(x + ...))), so that R(x) = 1 / (x + c) for x > 0 (Laplace).
double laplace_fraction(double x) {
  double c = 0;
  for (int k = 20 + static_cast<int>(480 / (x * x)); k >= 1; --k) c = k / (x + c);
  return c;
}

}  // namespace

double mills(double x) {
  if (x >= kFractionFrom) return 1 / (x + laplace_fraction(x));
  // sqrt(pi/2) e^{x^2/2} erfc(x / sqrt 2)
  return std::sqrt(std::numbers::pi / 2) * std::exp(x * x / 2) * std::erfc(x / std::numbers::sqrt2);
}

double mills_descent(double x) {
  if (x < kFractionFrom) return 1 - x * mills(x);
  const double c = laplace_fraction(x);
  return c / (x + c);
}

double log_upper_tail(double x) {
  if (x < 0) return std::log1p(-std::erfc(-x / std::numbers::sqrt2) / 2);
  if (x < kFractionFrom) return std::log(std::erfc(x / std::numbers::sqrt2) / 2);
  return -x * x / 2 - kLogSqrtTwoPi + std::log(mills(x));
}

}  // namespace eigenveil::normal
