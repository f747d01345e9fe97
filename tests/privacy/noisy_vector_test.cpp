// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/noisy_vector.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "eigenveil/privacy/poisson_sample.hpp"

namespace eigenveil {
namespace {

constexpr Int128 kBound = Int128{1} << NoisyVector::kBits;

Int128 squared_distance(const std::vector<Int128>& a, const std::vector<Int128>& b) {
  Int128 sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

std::vector<Int128> lattice(const std::vector<double>& v, double clip) {
  auto sum = NoisyVector::on_lattice(v, clip);
  EXPECT_TRUE(sum.ok());
  return sum->values;
}

TEST(NoisyVector, IsNeverLongerThanTheClipInExactIntegers) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-1070, 1020), part(-1, 1);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::size_t n = 1 + random() % 300;
    std::vector<double> v(n);
    const double common = exponent(random);
    const int kind = trial % 4;
    for (double& x : v)
      x = kind == 0   ? std::exp2(exponent(random)) * part(random)
          : kind == 1 ? std::exp2(common) * part(random)
          : kind == 2 ? std::exp2(common)
                      : part(random);
    const double clip = std::exp2(exponent(random) / 4);
    const auto u = lattice(v, clip);
    EXPECT_LE(squared_distance(u, std::vector<Int128>(n)), kBound * kBound) << trial;
  }
}

TEST(NoisyVector, KeepsWhatIsShortEnough) {
  EXPECT_EQ(lattice({0.5, -0.25, 0}, 2), (std::vector<Int128>{kBound / 4, -kBound / 8, 0}));
  EXPECT_EQ(lattice({0, 0}, 2), (std::vector<Int128>{0, 0}));
  // 3-4-5, clipped to a fifth
  const auto u = lattice({3, 4}, 1);
  EXPECT_NEAR(static_cast<double>(u[0]), 0.6 * 0x1p40, 2);
  EXPECT_NEAR(static_cast<double>(u[1]), 0.8 * 0x1p40, 2);
}

TEST(NoisyVector, NeighboursCanBeTwoClipsApartAndNoMore) {
  const auto there = lattice({7, 0, 0}, 0.1), back = lattice({-1e300, 0, 0}, 0.1);
  const auto sensitivity = static_cast<Int128>(NoisyVector::sensitivity().value());
  EXPECT_EQ(squared_distance(there, back), sensitivity * sensitivity);
  EXPECT_EQ(sensitivity, 2 * kBound);
}

TEST(NoisyVector, RefusesWhatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto sum = NoisyVector::on_lattice(std::vector<double>{1, bad, 2}, 1);
    ASSERT_FALSE(sum.ok());
    EXPECT_NE(sum.error().message.find("entry 2 of 3"), std::string::npos) << sum.error().message;
  }
  auto random = SecureRandom::insecure(1);
  EXPECT_FALSE(NoisyVector::release(std::vector<double>{std::nan("")}, 1, 1, random).ok());
}

TEST(NoisyVector, RefusesPlansThatCannotBeDrawn) {
  EXPECT_TRUE(NoisyVector::check(1, 1000, 1000000).ok());
  EXPECT_FALSE(NoisyVector::check(0, 10, 10).ok());
  EXPECT_FALSE(NoisyVector::check(std::nan(""), 10, 10).ok());
  EXPECT_FALSE(NoisyVector::check(1, 3000, 1000000).ok()) << "more integers than discrete.proof.md allows";
}

// Deviation = multiplier * 2 clip, also of an empty batch's zero. False alarm: below 1e-6 (5 deviations of the
// estimate).
TEST(NoisyVector, HasTheNoiseOfTwoClips) {
  auto random = SecureRandom::insecure(5);
  const std::vector<double> zero(40000);
  const auto noisy = NoisyVector::release(zero, 0.25, 1.5, random);
  ASSERT_TRUE(noisy.ok());
  const double deviation = std::sqrt(noisy->value().squaredNorm() / 40000);
  EXPECT_NEAR(deviation, 1.5 * 2 * 0.25, 5 * 0.75 / std::sqrt(80000.0));
}

TEST(PoissonSample, TakesEveryRowWithItsProbability) {
  auto random = SecureRandom::insecure(7);
  for (const double q : {1.0, 0.75, 0.5, 0.3, 0.015}) {
    const auto sample = PoissonSample::of(q);
    ASSERT_TRUE(sample.ok());
    EXPECT_LE(sample->probability(), q);
    EXPECT_GE(sample->probability(), q * (1 - 0x1p-60));
    constexpr std::size_t kRows = 150, kDraws = 20000;  // two words and a piece
    std::vector<std::size_t> chosen, hits(kRows);
    double sizes = 0;
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      sample->draw(kRows, random, chosen);
      ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
      for (const std::size_t row : chosen) ++hits.at(row);
      const double off = static_cast<double>(chosen.size()) - q * kRows;
      sizes += off * off;
    }
    // 6 deviations: 1e-6 for all rows and rates together
    for (const std::size_t count : hits)
      EXPECT_NEAR(static_cast<double>(count), q * kDraws, 6 * std::sqrt(q * (1 - q) * kDraws)) << q;
    // independent rows: the variance of a batch's size is n q (1 - q), here within 6%
    EXPECT_NEAR(sizes / kDraws, q * (1 - q) * kRows, 0.06 * q * (1 - q) * kRows) << q;
  }
}

TEST(PoissonSample, RefusesWhatIsNoProbability) {
  for (const double q : {0.0, -0.1, 1.5, std::nan("")}) EXPECT_FALSE(PoissonSample::of(q).ok()) << q;
}

}  // namespace
}  // namespace eigenveil
