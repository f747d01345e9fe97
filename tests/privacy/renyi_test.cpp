// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/renyi.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace eigenveil {
namespace {

// ln of the integral of p^alpha r^(1-alpha), by the trapezoidal rule in log space: spectrally accurate here.
double integrated(const std::function<double(double)>& log_p, const std::function<double(double)>& log_r, double alpha,
                  double low, double high) {
  const int steps = 400000;
  const double step = (high - low) / steps;
  long double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double x = low + step * i;
    sum += std::exp(static_cast<long double>(alpha * log_p(x) + (1 - alpha) * log_r(x)));
  }
  return static_cast<double>(std::log(sum * step)) / (alpha - 1);
}

TEST(Renyi, OfASampledGaussianMatchesNumericalIntegrationInBothDirections) {
  for (const double q : {0.001, 0.1, 0.7})
    for (const double sigma : {0.7, 2.0})
      for (const int alpha : {2, 3, 8, 32}) {
        const double norm = -std::log(sigma * std::sqrt(2 * M_PI));
        const auto plain = [&](double x) { return norm - x * x / (2 * sigma * sigma); };
        const auto mixed = [&](double x) {
          return plain(x) + std::log1p(q * std::expm1((2 * x - 1) / (2 * sigma * sigma)));
        };
        const double bound = renyi_of(PoissonGaussianEvent{q, sigma}, alpha);
        const double forward = integrated(mixed, plain, alpha, -40 * sigma, 40 * sigma + alpha);
        const double backward = integrated(plain, mixed, alpha, -40 * sigma - alpha, 40 * sigma);
        EXPECT_NEAR(bound, forward, 1e-8 * forward + 1e-12) << q << " " << sigma << " " << alpha;
        EXPECT_LE(backward, bound + 1e-12) << q << " " << sigma << " " << alpha;
      }
}

TEST(Renyi, OfASampleThatTakesEveryRowOrHardlyAnyIsThatOfTheGaussianOrNearlyNothing) {
  for (const int alpha : {2, 17, 4096}) {
    EXPECT_DOUBLE_EQ(renyi_of(PoissonGaussianEvent{1, 4}, alpha), renyi_of(GaussianEvent{0.25}, alpha));
    EXPECT_TRUE(alpha > 100 || renyi_of(PoissonGaussianEvent{0x1p-100, 4}, alpha) < 1e-50);
    // Continuous at q = 1, where all the cancellation would be.
    EXPECT_NEAR(renyi_of(PoissonGaussianEvent{1 - 1e-15, 4}, alpha), renyi_of(GaussianEvent{0.25}, alpha),
                1e-8 * renyi_of(GaussianEvent{0.25}, alpha));
  }
}

TEST(Renyi, OfASampledGaussianIsBelowTheGaussianItselfAndGrowsInEveryParameter) {
  double before = 0;
  for (const int alpha : renyi_orders()) {
    const double value = renyi_of(PoissonGaussianEvent{0.01, 1}, alpha);
    EXPECT_GE(value, before) << alpha;
    EXPECT_LE(value, renyi_of(GaussianEvent{1}, alpha)) << alpha;
    EXPECT_LE(value, renyi_of(PoissonGaussianEvent{0.011, 1}, alpha));
    EXPECT_LE(value, renyi_of(PoissonGaussianEvent{0.01, 0.99}, alpha));
    before = value;
  }
}

TEST(Renyi, OfASmallSampleKeepsItsDigits) {
  // alpha = 2: ln(1 + q^2 (e^(1/sigma^2) - 1)), far below the resolution of 1 + x.
  const double q = 1e-12;
  EXPECT_NEAR(renyi_of(PoissonGaussianEvent{q, 1}, 2) / (q * q * std::expm1(1.0)), 1, 1e-8);
}

TEST(Renyi, OfAPureAnswerIsThatOfRandomisedResponse) {
  for (const double epsilon : {0.01, 0.5, 3.0, 20.0})
    for (const int alpha : {2, 5, 30}) {
      const long double yes = 1 / (1 + std::exp(-static_cast<long double>(epsilon)));
      const long double no = 1 / (1 + std::exp(static_cast<long double>(epsilon)));
      const long double sum =
          std::pow(yes, alpha) * std::pow(no, 1 - alpha) + std::pow(no, alpha) * std::pow(yes, 1 - alpha);
      EXPECT_NEAR(renyi_of(PureEvent{epsilon}, alpha) / static_cast<double>(std::log(sum) / (alpha - 1)), 1, 1e-8);
    }
}

TEST(Renyi, OfAPureAnswerKeepsItsDigitsAtBothEnds) {
  EXPECT_NEAR(renyi_of(PureEvent{1e-9}, 10) / (10 * 1e-18 / 2), 1, 1e-7);
  // Both branches of the formula meet at alpha * epsilon = 700.
  EXPECT_NEAR(renyi_of(PureEvent{700.0 / 50 * (1 + 1e-13)}, 50) / renyi_of(PureEvent{700.0 / 50 * (1 - 1e-13)}, 50), 1,
              1e-11);
  for (const double epsilon : {1.0, 100.0}) {
    EXPECT_LE(renyi_of(PureEvent{epsilon}, 4096), epsilon * (1 + 1e-8));
    EXPECT_GE(renyi_of(PureEvent{epsilon}, 4096), epsilon * 0.999);
  }
}

TEST(Renyi, OfExtremeNoiseIsHugeOrNothingAndNeverNan) {
  EXPECT_GT(renyi_of(GaussianEvent{0x1p60}, 2), 1e30);
  EXPECT_GT(renyi_of(PoissonGaussianEvent{0.5, 0x1p-60}, 100), 1e30);
  EXPECT_GE(renyi_of(PoissonGaussianEvent{0.5, 0x1p100}, 100), 0);
  EXPECT_GT(renyi_of(PoissonGaussianEvent{0x1p-100, 1e-3}, 4096), 0);
}

TEST(Renyi, ConversionIsTheInverseOfItsDelta) {
  for (const int alpha : {2, 7, 100, 4096})
    for (const double delta : {1e-300, 1e-6, 0.3}) {
      const double epsilon = 2 + renyi_conversion(alpha, *Delta::of(delta));
      // delta = e^((alpha-1)(r - eps)) / (alpha-1) * (1 - 1/alpha)^alpha at r = 2
      const double log_delta = (alpha - 1) * (2 - epsilon) - std::log(alpha - 1.0) + alpha * std::log1p(-1.0 / alpha);
      EXPECT_NEAR(log_delta, std::log(delta), 1e-9 * std::abs(std::log(delta)));
      EXPECT_LE(log_delta, std::log(delta) + 1e-12);
    }
}

}  // namespace
}  // namespace eigenveil
