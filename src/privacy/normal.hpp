// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace eigenveil::normal {

inline constexpr double kLogSqrtTwoPi = 0.91893853320467274178;

/// The five-point Gauss-Legendre rule on [-1, 1].
struct GaussPoint {
  double node;
  double weight;
};
inline constexpr std::array<GaussPoint, 5> kGauss5{{{-0.90617984593866399280, 0.23692688505618908751},
                                                    {-0.53846931010568309104, 0.47862867049936646804},
                                                    {0.0, 0.56888888888888888889},
                                                    {0.53846931010568309104, 0.47862867049936646804},
                                                    {0.90617984593866399280, 0.23692688505618908751}}};

/// R(x) = Q(x) / phi(x), the Mills ratio. For x far below 0 it overflows: use log_upper_tail there.
double mills(double x);
/// -R'(x) = 1 - x R(x) = integral over s > 0 of s exp(-x s - s^2/2): positive, and computed without cancellation.
double mills_descent(double x);
/// ln Q(x), Q(x) = P(N(0,1) > x), for every x.
double log_upper_tail(double x);

}  // namespace eigenveil::normal
