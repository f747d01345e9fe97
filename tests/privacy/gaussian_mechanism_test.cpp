// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/gaussian_mechanism.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace eigenveil {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(GaussianMechanism, NoiseIsNeverBelowSensitivityOverMu) {
  for (double s = 1; s < 1e25; s *= 7.3)
    for (double mu = 1e-2; mu < 30; mu *= 1.7) {
      const auto noise = GaussianMechanism::noise_for(Sensitivity(s), mu);
      if (!noise) {
        EXPECT_GT(s / mu, 0x1p73);
        continue;
      }
      EXPECT_TRUE(noise->coarse == 0 || s / mu > 0x1p53);
      EXPECT_GE(noise->deviation(), s / mu);
      const long double needed = static_cast<long double>(s) / mu * std::ldexp(1.0L, noise->shift - noise->coarse);
      const long double off = static_cast<long double>(noise->sigma_off);
      EXPECT_GE(static_cast<long double>(noise->sigma), needed);
      EXPECT_GE(off * off * 2, needed * needed);
      EXPECT_GE(static_cast<long double>(noise->sigma) * static_cast<long double>(noise->sigma), off * off * 2);
      EXPECT_LE(static_cast<long double>(noise->sigma), needed * (1 + 0x1p-18L)) << "wasteful";
      EXPECT_GE(noise->sigma_off, std::uint64_t{1} << (noise->coarse == 0 ? 40 : 33));
    }
}

TEST(GaussianMechanism, NoQuotientIsSmallEnoughForNoNoise) {
  for (const double s : {5e-324, 1e-310, 1e-300, 1e-30, 1.7e308})
    for (const double mu : {0x1p60, 1.0, 0x1p-100}) {
      const auto noise = GaussianMechanism::noise_for(Sensitivity(s), mu);
      EXPECT_FALSE(noise.ok() && !(noise->deviation() >= s / mu && noise->sigma_off > 0)) << s << " " << mu;
    }
}

TEST(GaussianMechanism, RefusesNoiseItCannotDraw) {
  EXPECT_FALSE(GaussianMechanism::noise_for(Sensitivity(0x1p40), 1e-12).ok());
  for (const double bad : {0.0, -1.0, std::nan(""), kInfinity, -kInfinity})
    EXPECT_THROW((void)Sensitivity(bad), std::domain_error) << bad;
}

TEST(GaussianMechanism, HardlyAnyNoiseGivesNearlyTheExactSum) {
  auto random = SecureRandom::insecure(1);
  PrivateSum sum{PrivateSum::Layout::kSymmetric, 2, 2, Sensitivity(1), 0.5, {3, -5, 7}};
  const auto released = GaussianMechanism::release(sum, 0x1p19, random);
  ASSERT_TRUE(released.ok());
  Matrix expected(2, 2);
  expected << 1.5, -2.5, -2.5, 3.5;
  EXPECT_LT((released->value() - expected).cwiseAbs().maxCoeff(), 1e-5);
  EXPECT_NE(released->value(), expected) << "there is always noise";
}

// Variance sigma^2 on the diagonal and half of it off the diagonal, the same noise in both triangles.
TEST(GaussianMechanism, SymmetricNoiseHasHalfTheVarianceOffTheDiagonal) {
  auto random = SecureRandom::insecure(2);
  constexpr std::size_t kSize = 400;
  PrivateSum sum{PrivateSum::Layout::kSymmetric,
                 kSize,
                 kSize,
                 Sensitivity(0x1p40),
                 0x1p-41,
                 std::vector<Int128>(kSize * (kSize + 1) / 2)};
  const auto released = GaussianMechanism::release(sum, 0.5, random);
  ASSERT_TRUE(released.ok());
  const Matrix& noise = released->value();
  EXPECT_EQ(noise, Matrix(noise.transpose()));
  const double off = (noise.squaredNorm() - noise.diagonal().squaredNorm()) / (kSize * (kSize - 1.0));
  EXPECT_NEAR(off, 0.5, 0.5 * 5.5 * std::sqrt(2.0 / (kSize * (kSize - 1.0) / 2)));  // false alarm 4e-8
  EXPECT_NEAR(noise.diagonal().squaredNorm() / kSize, 1.0, 5.5 * std::sqrt(2.0 / kSize));
}

// 2^20 A + B: the variance of A alone would not show that low bits are missing.
TEST(GaussianMechanism, LargeNoiseHasItsVarianceAndItsLowBits) {
  auto random = SecureRandom::insecure(5);
  constexpr std::size_t kDraws = 40000;
  for (const std::size_t shares : {1U, 16U}) {
    const auto noisy = GaussianMechanism::add_noise(
        {PrivateSum::Layout::kPlain, kDraws, 1, Sensitivity(0x1p63), 1, std::vector<Int128>(kDraws)}, 0.5, shares,
        random);
    ASSERT_TRUE(noisy.ok());
    EXPECT_EQ(noisy->shift(), 0);
    double square = 0;
    double low = 0;
    for (const Int128 value : noisy->values()) {
      square += std::pow(std::ldexp(static_cast<double>(value), -64), 2);
      low += static_cast<double>(static_cast<std::uint64_t>(value) % (1U << 20)) / 0x1p20;
    }
    EXPECT_NEAR(square / kDraws * static_cast<double>(shares), 1, 5.5 * std::sqrt(2.0 / kDraws));
    EXPECT_NEAR(low / kDraws, 0.5, 5.5 * std::sqrt(1.0 / 12 / kDraws));
  }
}

TEST(GaussianMechanism, SmallSensitivitiesGetFineNoise) {
  auto random = SecureRandom::insecure(3);
  PrivateSum sum{PrivateSum::Layout::kPlain, 1, 1, Sensitivity(1), 1.0, {1000}};
  const auto released = GaussianMechanism::release(sum, 1, random);
  ASSERT_TRUE(released.ok());
  const double noise = released->value()(0, 0) - 1000;
  EXPECT_LT(std::fabs(noise), 6);
  EXPECT_NE(noise, std::round(noise));  // a whole number has probability about 2^-40
}

// Sums of people are finer than the noise: what is rounded off moves neighbours apart by up to one in every entry.
TEST(GaussianMechanism, RoundingIsPaidFor) {
  const double left = 1 + 0.74 * 0x1p-20;  // of the inflation, for discrete.proof.md
  bool paid = false;
  for (const auto layout : {PrivateSum::Layout::kPlain, PrivateSum::Layout::kSymmetric})
    for (const std::size_t d : {1U, 30U, 3000U})
      for (double s = 1; s < 0x1p45; s *= 37)
        for (double mu = 0x1p-30; mu < 4; mu *= 5) {
          const PrivateSum sum{layout, d, d, Sensitivity(s), 1, {}, 32};
          const auto noise = GaussianMechanism::noise_for(sum, mu);
          if (!noise) continue;
          const long double e = noise->shift < sum.fraction ? static_cast<long double>(d) : 0;
          const long double moved = std::ldexp(static_cast<long double>(s), noise->shift) + e;
          const long double sigma = std::ldexp(static_cast<long double>(noise->sigma), noise->coarse);
          const long double off = std::ldexp(static_cast<long double>(noise->sigma_off), noise->coarse);
          ASSERT_LE(moved * left, sigma * mu) << s << " " << mu << " " << d;
          ASSERT_LE(moved * moved * left * left, 2 * off * off * mu * mu) << s << " " << mu << " " << d;
          const auto without = *GaussianMechanism::noise_for(sum.moved, mu);
          paid = paid || without.deviation() < noise->deviation();
        }
  EXPECT_TRUE(paid) << "there are sums that need more noise for it";
}

// With the same draws, what two sums differ by is what is left of their difference.
TEST(GaussianMechanism, RoundsEveryEntryDownBeforeItsNoise) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    PrivateSum one{PrivateSum::Layout::kPlain, 3, 2, Sensitivity(1 + static_cast<double>(random() % 1000)), 1, {}, 32};
    for (int i = 0; i < 6; ++i) one.values.push_back(static_cast<std::int64_t>(random()) >> (random() % 30));
    PrivateSum two = one;
    for (Int128& x : two.values) x += static_cast<std::int64_t>(random()) >> (16 + random() % 40);
    const Mu mu(std::ldexp(1.0, -static_cast<int>(random() % 28)));
    const int shift = GaussianMechanism::noise_for(one, mu)->shift;
    auto draws = SecureRandom::insecure(7), again = SecureRandom::insecure(7);
    const auto a = *GaussianMechanism::add_noise(one, mu, 1, draws),
               b = *GaussianMechanism::add_noise(two, mu, 1, again);
    for (std::size_t i = 0; i < 6; ++i) {
      const Int128 exact = two.values[i] - one.values[i], seen = b.values()[i] - a.values()[i];
      // |seen - exact 2^(shift - fraction)| < 1
      const Int128 gap = (seen << 32) - (exact << shift);
      ASSERT_TRUE(gap < (Int128{1} << 32) && gap > -(Int128{1} << 32)) << trial;
    }
  }
}

TEST(GaussianMechanism, SumsBeyond64BitsSurvive) {
  auto random = SecureRandom::insecure(4);
  const Int128 large = Int128{1} << 80;
  PrivateSum sum{PrivateSum::Layout::kPlain, 1, 1, Sensitivity(0x1p41), 0x1p-80, {large}};
  const auto released = GaussianMechanism::release(sum, 1, random);
  ASSERT_TRUE(released.ok());
  EXPECT_NEAR(released->value()(0, 0), 1.0, 1e-10);
}

// Long sums are drawn by several threads, in blocks that begin anywhere in the triangle.
TEST(GaussianMechanism, LongSumsAreNoisedTheSameByAnyNumberOfThreads) {
  constexpr std::size_t kSize = 1500;  // 1,125,750 integers: more than one wave of blocks, and a part of one
  constexpr std::size_t kEntries = kSize * (kSize + 1) / 2;
  const auto noisy = [&](int threads, PrivateSum::Layout layout) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    auto random = SecureRandom::insecure(3);
    PrivateSum sum{layout,
                   layout == PrivateSum::Layout::kPlain ? kEntries : kSize,
                   layout == PrivateSum::Layout::kPlain ? 1 : kSize,
                   Sensitivity(0x1p40),
                   1,
                   std::vector<Int128>(kEntries)};
    auto released = GaussianMechanism::add_noise(std::move(sum), 0.5, 1, random);
    omp_set_num_threads(before);
    EXPECT_TRUE(released.ok());
    return (*std::move(released)).take_values();
  };
  for (const auto layout : {PrivateSum::Layout::kPlain, PrivateSum::Layout::kSymmetric}) {
    const auto one = noisy(1, layout);
    EXPECT_EQ(one, noisy(3, layout));
    // no block repeats another's noise
    std::vector<std::int64_t> sorted;
    for (const Int128 x : one) sorted.push_back(static_cast<std::int64_t>(x));
    std::sort(sorted.begin(), sorted.end());
    const auto repeats = sorted.end() - std::unique(sorted.begin(), sorted.end());
    EXPECT_LE(repeats, 20) << "of 2^41: about 0.1 by chance";
    if (layout == PrivateSum::Layout::kPlain) continue;
    double on = 0, off = 0;
    std::size_t i = 0;
    for (std::size_t column = 0; column < kSize; ++column)
      for (std::size_t row = column; row < kSize; ++row, ++i) {
        const double x = std::ldexp(static_cast<double>(one[i]), -41);
        (row == column ? on : off) += x * x;
      }
    EXPECT_NEAR(on / kSize, 1, 5.5 * std::sqrt(2.0 / kSize));
    EXPECT_NEAR(off / (kEntries - kSize), 0.5, 0.5 * 5.5 * std::sqrt(2.0 / (kEntries - kSize)));
  }
}

}  // namespace
}  // namespace eigenveil
