// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace eigenveil::test {

/// Upper limit of a chi-square statistic that chance exceeds with probability below 1e-7 (Laurent and Massart 2000:
/// P(X >= k + 2 sqrt(k x) + 2 x) <= e^-x).
inline double chi_square_limit(double degrees) {
  const double x = 7 * std::log(10.0);
  return degrees + 2 * std::sqrt(degrees * x) + 2 * x;
}

/// Pearson's statistic; cells with expectation below 10 are merged into their neighbours.
inline double chi_square(const std::vector<double>& observed, const std::vector<double>& expected, double& degrees) {
  double statistic = 0;
  double o = 0;
  double e = 0;
  degrees = -1;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    o += observed[i];
    e += expected[i];
    if (e < 10 && i + 1 < observed.size()) continue;
    statistic += e > 0 ? (o - e) * (o - e) / e : 0;
    degrees += 1;
    o = e = 0;
  }
  return statistic;
}

/// sqrt(n) sup |F_n - F| may exceed this with probability 2 exp(-2 t^2) < 1e-7 (Massart 1990).
inline constexpr double kKolmogorovLimit = 2.9;

template <class Cdf>
double kolmogorov(std::vector<double> sample, const Cdf& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double largest = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double f = cdf(sample[i]);
    largest =
        std::max({largest, std::fabs(f - static_cast<double>(i) / n), std::fabs(f - static_cast<double>(i + 1) / n)});
  }
  return std::sqrt(n) * largest;
}

}  // namespace eigenveil::test
