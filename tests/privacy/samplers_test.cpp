#include "eigenveil/privacy/samplers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/statistics.hpp"

// Every statistical test here has a false-alarm rate of at most 1e-6 and a fixed seed.
namespace eigenveil {
namespace {

using test::chi_square;
using test::chi_square_limit;

// Observed and expected counts over -reach..reach, with what falls outside in the end cells.
template <class Sampler, class Weight>
double misfit(const Sampler& draw, const Weight& weight, int reach, int draws, double& degrees) {
  auto random = SecureRandom::insecure(7);
  std::vector<double> observed(2 * static_cast<std::size_t>(reach) + 1);
  std::vector<double> expected(observed.size());
  for (int i = 0; i < draws; ++i) {
    const auto x = std::clamp<std::int64_t>(draw(random), -reach, reach);
    observed[static_cast<std::size_t>(x + reach)] += 1;
  }
  double total = 0;
  for (int x = -40 * reach; x <= 40 * reach; ++x) total += weight(x);
  for (int x = -40 * reach; x <= 40 * reach; ++x)
    expected[static_cast<std::size_t>(std::clamp(x, -reach, reach) + reach)] += draws * weight(x) / total;
  return chi_square(observed, expected, degrees);
}

struct Scale {
  std::uint64_t numerator;
  std::uint64_t denominator;
};

class SmallScales : public ::testing::TestWithParam<Scale> {};

TEST_P(SmallScales, GaussianHasItsExactProbabilities) {
  const auto [p, q] = GetParam();
  const double sigma = static_cast<double>(p) / static_cast<double>(q);
  double degrees = 0;
  const double statistic = misfit(
      DiscreteGaussian(p, q), [&](int x) { return std::exp(-0.5 * x * x / (sigma * sigma)); },
      static_cast<int>(4 * sigma) + 2, 2'000'000, degrees);
  EXPECT_GE(degrees, 2);
  EXPECT_LT(statistic, chi_square_limit(degrees));
}

TEST_P(SmallScales, LaplaceHasItsExactProbabilities) {
  const auto [p, q] = GetParam();
  const double scale = static_cast<double>(p) / static_cast<double>(q);
  double degrees = 0;
  const double statistic = misfit(
      DiscreteLaplace(p, q), [&](int x) { return std::exp(-std::abs(x) / scale); }, static_cast<int>(8 * scale) + 2,
      2'000'000, degrees);
  EXPECT_GE(degrees, 2);
  EXPECT_LT(statistic, chi_square_limit(degrees));
}

INSTANTIATE_TEST_SUITE_P(FromHalfToForty, SmallScales,
                         ::testing::Values(Scale{1, 2}, Scale{1, 1}, Scale{3, 2}, Scale{7, 3}, Scale{5, 1},
                                           Scale{41, 1}));

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

class LargeScales : public ::testing::TestWithParam<std::uint64_t> {};

// At these scales the step of the distribution function (below 1e-4) is invisible to 200,000 draws.
TEST_P(LargeScales, GaussianFitsTheNormalLawWithIndependentDraws) {
  const std::uint64_t sigma = GetParam();
  const DiscreteGaussian draw(sigma);
  auto random = SecureRandom::insecure(sigma);
  constexpr int kDraws = 200'000;
  std::vector<double> z;
  for (int i = 0; i < kDraws; ++i) z.push_back(static_cast<double>(draw(random)) / static_cast<double>(sigma));
  EXPECT_LT(test::kolmogorov(z, normal_cdf), test::kKolmogorovLimit);

  double mean = 0;
  double square = 0;
  double fourth = 0;
  double lagged = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = z[static_cast<std::size_t>(i)];
    mean += x / kDraws;
    square += x * x / kDraws;
    fourth += x * x * x * x / kDraws;
    if (i > 0) lagged += x * z[static_cast<std::size_t>(i) - 1] / kDraws;
  }
  // 5.5 standard errors: 1, sqrt(2), sqrt(96) and 1 over sqrt(n)
  const double limit = 5.5 / std::sqrt(kDraws);
  EXPECT_LT(std::fabs(mean), limit);
  EXPECT_LT(std::fabs(square - 1), std::sqrt(2.0) * limit);
  EXPECT_LT(std::fabs(fourth - 3), std::sqrt(96.0) * limit);
  EXPECT_LT(std::fabs(lagged), limit);
}

// The low bits carry the exactness: they must be uniform and independent of the high ones.
TEST_P(LargeScales, GaussianLowBitsAreUniform) {
  const DiscreteGaussian draw(GetParam());
  auto random = SecureRandom::insecure(GetParam() + 1);
  std::vector<double> observed(64);
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) observed[static_cast<std::size_t>(draw(random) & 63)] += 1;
  double degrees = 0;
  const double statistic = chi_square(observed, std::vector<double>(64, kDraws / 64.0), degrees);
  EXPECT_LT(statistic, chi_square_limit(degrees));
}

INSTANTIATE_TEST_SUITE_P(UpToTwoToThe45, LargeScales,
                         ::testing::Values(std::uint64_t{1} << 14, (std::uint64_t{1} << 20) + 7, std::uint64_t{3} << 33,
                                           std::uint64_t{1} << 40, (std::uint64_t{1} << 45) - 1,
                                           DiscreteGaussian::kLargestSigma));

TEST(BernoulliExp, HasItsExactProbability) {
  struct Fraction {
    std::uint64_t numerator;
    std::uint64_t denominator;
  };
  auto random = SecureRandom::insecure(3);
  constexpr int kDraws = 1'000'000;
  for (const auto [n, d] : {Fraction{0, 1}, Fraction{1, 3}, Fraction{1, 1}, Fraction{7, 2}, Fraction{12, 5}}) {
    const double p = std::exp(-static_cast<double>(n) / static_cast<double>(d));
    int hits = 0;
    for (int i = 0; i < kDraws; ++i) hits += bernoulli_exp(n, d, random) ? 1 : 0;
    EXPECT_LE(std::fabs(hits - kDraws * p), 5.5 * std::sqrt(kDraws * p * (1 - p))) << n << "/" << d;
  }
  // a numerator and a denominator beyond 64 bits
  const UInt128 big = UInt128{1} << 100;
  int hits = 0;
  for (int i = 0; i < kDraws; ++i) hits += bernoulli_exp(big / 2 + 1, big, random) ? 1 : 0;
  const double p = std::exp(-0.5);
  EXPECT_LE(std::fabs(hits - kDraws * p), 5.5 * std::sqrt(kDraws * p * (1 - p)));
}

}  // namespace
}  // namespace eigenveil
