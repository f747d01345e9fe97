// SPDX-License-Identifier: Apache-2.0
// A short audit of batches; bench/audit has the long one. Seeds are fixed: nothing here fails by chance.
#include "bench/audit/audit.hpp"

#include <gtest/gtest.h>

#include <random>

namespace eigenveil::audit {
namespace {

TEST(ClipAudit, BoundsOfProbabilitiesAreThoseOfClopperAndPearson) {
  EXPECT_NEAR(upper_bound(0, 100, 0.025), 1 - std::pow(0.025, 0.01), 1e-9);
  EXPECT_NEAR(lower_bound(100, 100, 0.025), std::pow(0.025, 0.01), 1e-9);
  // 10 of 100 at 95%: the tables' 0.0490 and 0.1762
  EXPECT_NEAR(lower_bound(10, 100, 0.025), 0.04900, 1e-5);
  EXPECT_NEAR(upper_bound(10, 100, 0.025), 0.17622, 1e-5);
}

// Scores of a mechanism that is epsilon-DP and no better: a bit that is told right with probability e / (1 + e).
TEST(ClipAudit, FindsTheEpsilonOfABitAndNoMore) {
  std::mt19937_64 random(1);
  std::bernoulli_distribution right(std::exp(1.0) / (1 + std::exp(1.0)));
  Scores scores;
  for (int i = 0; i < 40000; ++i) {
    scores.absent.push_back(right(random) ? 0 : 1);
    scores.present.push_back(right(random) ? 1 : 0);
  }
  const double found = epsilon_below(scores, 0);
  EXPECT_LT(found, 1);
  EXPECT_GT(found, 0.9);
}

double found_in(double epsilon, Calibration calibration, double* certified) {
  constexpr double kDelta = 1e-5;
  const BatchFit fit(0.02, 100, epsilon, kDelta, calibration, 400);
  *certified = *epsilon_of(fit.plan().events, *Delta::of(kDelta));
  return epsilon_below(run(5000, [&](bool canary, std::uint64_t seed) { return fit.score(canary, seed); }), kDelta);
}

TEST(ClipAudit, ACanaryFindsLessThanIsCertified) {
  double certified = 0;
  const double found = found_in(3, Calibration::kTight, &certified);
  EXPECT_LE(certified, 3);
  EXPECT_LT(found, certified);
  EXPECT_GT(found, 0.2) << "it looks";
}

TEST(ClipAudit, ACanaryFindsMoreThanThePaperClaims) {
  double certified = 0;
  const double found = found_in(3, Calibration::kPaper, &certified);
  EXPECT_GT(found, 3);
  EXPECT_LT(found, certified);
}

}  // namespace
}  // namespace eigenveil::audit
