// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/samplers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "src/privacy/gaussian_cells.hpp"
#include "src/privacy/laplace.hpp"
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
    const auto x = static_cast<std::int64_t>(std::clamp<Int128>(draw(random), -reach, reach));
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

class SmallGaussians : public ::testing::TestWithParam<std::uint64_t> {};

// From cells of one integer to cells of 41.
TEST_P(SmallGaussians, HaveTheirExactProbabilities) {
  const auto sigma = static_cast<double>(GetParam());
  double degrees = 0;
  const double statistic = misfit(
      DiscreteGaussian(GetParam()), [&](int x) { return std::exp(-0.5 * x * x / (sigma * sigma)); },
      static_cast<int>(4 * sigma), 4'000'000, degrees);
  EXPECT_GE(degrees, 2);
  EXPECT_LT(statistic, chi_square_limit(degrees));
}

INSTANTIATE_TEST_SUITE_P(Multiples, SmallGaussians, ::testing::Values(64, 128, 192, 448, 2624));

class SmallScales : public ::testing::TestWithParam<Scale> {};

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

// A source that says yes to the geometric part of the Laplace draw as often as it is told.
struct Yes {
  std::uint64_t times;
  int asked = 0;
  std::uint64_t below(std::uint64_t n) {
    if (asked == 0) return ++asked, n - 1;           // u = t - 1
    if (asked == 1 && n > 3) return ++asked, n - 1;  // kept: the first Bernoulli(u / t) fails at once
    if (times == 0) return 1;                        // no more steps; then the sign
    return n == 2 ? 0 : (--times, 1);                // 0 of 2, then 1 of 3: Bernoulli(e^-1) is a success
  }
};

TEST(Laplace, HasNoLargestMagnitude) {
  for (const std::uint64_t steps : {0ULL, 255ULL, 256ULL, 257ULL, 100000ULL}) {
    Yes random{steps};
    const std::uint64_t t = std::uint64_t{1} << 54;
    EXPECT_EQ(laplace::draw(t, 1, random), -(Int128{t} * static_cast<Int128>(steps) + static_cast<Int128>(t - 1)))
        << steps;
  }
}

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
                         ::testing::Values(std::uint64_t{1} << 14, (std::uint64_t{1} << 20) + 448,
                                           std::uint64_t{3} << 33, std::uint64_t{1} << 40,
                                           (std::uint64_t{1} << 45) - 64, DiscreteGaussian::kLargestSigma));

TEST(GaussianCells, StartAtTheirProbabilities) {
  const auto& starts = GaussianCells::get().starts();
  long double total = 0;
  for (int m = 0; m < 4096; ++m) total += std::exp(-static_cast<long double>(m) * m / 8192);
  long double before = 0;
  ASSERT_GT(starts.size(), 500U);
  for (std::size_t m = 0; m < starts.size(); ++m) {
    ASSERT_NEAR(static_cast<double>(static_cast<long double>(starts[m]) * 0x1p-64L - before / total), 0, 0x1p-56) << m;
    before += std::exp(-static_cast<long double>(m * m) / 8192);
  }
  EXPECT_EQ(starts.back(), UINT64_MAX);
}

// The words beside a cell's end tell which cell it is; the word at its end leaves it to digits to come.
TEST(GaussianCells, AreDecidedByAsManyDigitsAsItTakes) {
  const auto& starts = GaussianCells::get().starts();
  auto random = SecureRandom::insecure(11);
  for (const std::size_t m : {1U, 2U, 63U, 200U, 400U, 570U}) {
    EXPECT_EQ(GaussianCells::decide(starts[m] - 1, random), m - 1);
    EXPECT_EQ(GaussianCells::decide(starts[m] + 1, random), m);
  }
  EXPECT_EQ(GaussianCells::decide(0, random), 0U);
  EXPECT_GE(GaussianCells::decide(UINT64_MAX, random), starts.size() - 2);

  // the digits from the 65th on of P(cell < m), by Python's decimal with 60 digits
  struct End {
    std::size_t m;
    double digits;
  };
  for (const auto& [m, digits] : {End{1, 0.302095}, End{3, 0.921476}, End{64, 0.126062}}) {
    constexpr int kDraws = 80;
    int before = 0;
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t cell = GaussianCells::decide(starts[m], random);
      ASSERT_TRUE(cell == m - 1 || cell == m);
      before += cell == m - 1 ? 1 : 0;
    }
    EXPECT_LE(std::fabs(before - kDraws * digits), 5.5 * std::sqrt(kDraws * digits * (1 - digits))) << m;
  }
}

TEST(GaussianCells, KeepPlacesWithTheirExactProbability) {
  struct Place {
    std::uint64_t m, r, width;
  };
  auto random = SecureRandom::insecure(13);
  for (const auto& [m, r, width] :
       {Place{0, 99, 100}, Place{1, 50, 100}, Place{64, 2, 3}, Place{1000, 1, 4}, Place{4095, 99, 100},
        Place{2048, std::uint64_t{1} << 46, std::uint64_t{1} << 47}}) {
    const double part = static_cast<double>(r) / static_cast<double>(width);
    const double p = std::exp(-part * (2 * static_cast<double>(m) + part) / 8192);
    constexpr int kDraws = 2'000'000;
    int kept = 0;
    for (int i = 0; i < kDraws; ++i)
      kept += GaussianCells::keeps(m, r, width, random.below(GaussianCells::kSlots), random) ? 1 : 0;
    EXPECT_LE(std::fabs(kept - kDraws * p), 5.5 * std::sqrt(kDraws * p * (1 - p))) << m << " " << part;
  }
}

// Within a cell of 41 integers the far end is rarer: 1 part in 64 at one deviation, more beyond.
TEST(DiscreteGaussian, FallsWithinACell) {
  constexpr std::uint64_t kWidth = 41;
  const DiscreteGaussian draw(64 * kWidth);
  auto random = SecureRandom::insecure(17);
  std::vector<double> observed(kWidth), expected(kWidth);
  double total = 0, counted = 0;
  for (std::uint64_t x = 64 * kWidth; x < 64 * kWidth * 10; ++x) {
    const double z = static_cast<double>(x) / (64 * kWidth);
    expected[x % kWidth] += std::exp(-z * z / 2);
    total += std::exp(-z * z / 2);
  }
  for (int i = 0; i < 20'000'000; ++i) {
    const auto x = static_cast<std::uint64_t>(std::abs(draw(random)));
    if (x < 64 * kWidth) continue;
    observed[x % kWidth] += 1;
    counted += 1;
  }
  for (double& e : expected) e *= counted / total;
  double degrees = 0;
  const double statistic = chi_square(observed, expected, degrees);
  EXPECT_LT(statistic, chi_square_limit(degrees));
}

}  // namespace
}  // namespace eigenveil
