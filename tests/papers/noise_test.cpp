// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/papers/noise.hpp"

#include <gtest/gtest.h>

#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/estimators/pca/power.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

// The papers' sigma, recomputed from their formulas and read off the noise that the oracle states.
TEST(PaperNoise, IsThePapersOwn) {
  const Epsilon epsilon = *Epsilon::of(0.8);
  const Delta delta = *Delta::of(1e-5);
  const double B2 = 9;
  const Lattice lattice{3, 20};
  const auto X = *Directions::quantise(Matrix::Identity(4, 2));
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const PcaOptions options{.components = 2};
    const auto last_mu = [](const PrivacyPlan& plan) { return test::mu_of(plan.events.back()); };
    const auto noise_of = [&](const SumQuery& query, Mu mu) {
      return deviation_of(empty_sum(query, 4, lattice, adjacency), mu);
    };

    const PrivacyPlan gram = papers::gram(PrivacyPlan(adjacency, {{"covariance", GaussianEvent{1}}}), epsilon, delta);
    EXPECT_NEAR(noise_of(Gram{}, last_mu(gram)), B2 * std::sqrt(2 * std::log(1.25e5)) / 0.8, 1e-3);

    const PowerOptions plain{.rounds = 5, .filter = RowFilter::kOff};
    const PrivacyPlan sparse = papers::sparse_power(plan_power(adjacency, options, plain), 2, epsilon, delta);
    EXPECT_NEAR(noise_of(Apply{X}, last_mu(sparse)), B2 * 2 * 5 / 0.8 * std::sqrt(2 * std::log(2 * 5e5)), 0.05);

    // epsilon = 2 (T e^2 + sqrt(2 T ln(1 / d)) e), d = delta / (T + 1)
    const PowerOptions drop{.rounds = 5, .filter = RowFilter::kDrop};
    const PrivacyPlan adaptive = papers::adaptive_power(plan_power(adjacency, options, drop), epsilon, delta);
    const double e = std::get<PureEvent>(adaptive.events[adaptive.events.size() - 2].mechanism).epsilon;
    const double d = 1e-5 / 6;
    EXPECT_NEAR(2 * (5 * e * e + std::sqrt(2 * 5 * std::log(1 / d)) * e), 0.8, 1e-9);
    const FilteredApply query{X, {0.5, B2}, FilterMode::kDrop};
    EXPECT_NEAR(deviation_of(empty_sum(query, 0, lattice, adjacency), last_mu(adaptive)),
                0.5 * std::sqrt(2 * std::log(2 / d)) / e, 0.01);
    EXPECT_NEAR(papers::rows_above(5, epsilon, delta), 6 * std::log(20.0) / e, 1e-9);
  }
}

constexpr GepOptions kEachStep{.components = 1, .noise = GepNoise::kEachStep};

// rho = (sqrt(1 + ln 1e6) - sqrt(ln 1e6))^2 = 0.017466, sigma = 12 sqrt(15 / rho) = 351.7: mu = sqrt(2) / sigma per
// round
TEST(PaperNoise, OfCanonicalCorrelationsIsFarMoreThanClaimed) {
  const PrivacyPlan plan =
      papers::cca(plan_cca(Adjacency::kReplaceOne, {kEachStep, 5}), *Epsilon::of(1), *Delta::of(1e-6));
  ASSERT_EQ(plan.events.size(), 15U);
  EXPECT_NEAR(test::mu_of(plan.events[0]), std::sqrt(2.0) / 351.7, 1e-5);
  EXPECT_LT(*epsilon_of(plan.events, *Delta::of(1e-6)), 0.1);
}

// The same sigma with C = 4 or 13 for counts and sums of classes, 7 or 6 for each product.
TEST(PaperNoise, OfClassesHasAConstantPerAnswer) {
  for (const auto& [problem, noise, between, within] : {std::tuple{ClassProblem::kFisher, &papers::fda, 4.0, 7.0},
                                                        std::tuple{ClassProblem::kSliced, &papers::sir, 13.0, 6.0}}) {
    const PrivacyPlan plan =
        noise(plan_classes(Adjacency::kReplaceOne, {kEachStep, problem, 2}), *Epsilon::of(1), *Delta::of(1e-6));
    ASSERT_EQ(plan.events.size(), 17U);
    const double unit = 351.7 / 12;
    EXPECT_NEAR(test::mu_of(plan.events[0]), std::sqrt(2.0) / (between * unit), 1e-5);
    EXPECT_NEAR(test::mu_of(plan.events[1]), 2 / (between * unit), 1e-5);
    EXPECT_NEAR(test::mu_of(plan.events[16]), 1 / (within * unit), 1e-5);
  }
}

TEST(PaperNoise, OfGivenMatricesAddsUpToItsRho) {
  const PrivacyPlan plan =
      papers::matrices(plan_matrices(Adjacency::kReplaceOne, kEachStep), *Epsilon::of(1), *Delta::of(1e-6));
  double total = 0;
  for (const PrivacyEvent& event : plan.events) total += test::mu_of(event) * test::mu_of(event) / 2;
  EXPECT_NEAR(total, papers::rho(*Epsilon::of(1), *Delta::of(1e-6)), 1e-12);
  EXPECT_LE(*epsilon_of(plan.events, *Delta::of(1e-6)), 1);
}

TEST(PaperNoise, OfBatchesIsHalfOfWhatItsClaimNeeds) {
  ClipOptions options{.method = ClipMethod::kBatch, .dim = 2};
  options.training = {.sample_rate = 0.02, .steps = 50};
  const PrivacyPlan shape = plan_training(options);
  const auto sigma = [](const PrivacyPlan& plan) {
    return std::get<PoissonGaussianEvent>(plan.events[0].mechanism).sigma;
  };
  const auto tight = calibrate(shape, *Epsilon::of(1), *Delta::of(1e-6));
  const auto paper = papers::batch(shape, *Epsilon::of(1), *Delta::of(1e-6), Accounting::kTight);
  EXPECT_NEAR(sigma(*paper), sigma(*tight) / 2, 1e-12);
  EXPECT_GT(*epsilon_of(paper->events, *Delta::of(1e-6)), 1.5);
}

}  // namespace
}  // namespace eigenveil
