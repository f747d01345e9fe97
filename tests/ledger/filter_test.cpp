// SPDX-License-Identifier: Apache-2.0
// Which plans a budget takes, and that whatever it takes stays within it.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/privacy/renyi.hpp"
#include "ledger_testing.hpp"

namespace eigenveil::test {
namespace {

using ::testing::StartsWith;

constexpr auto kAddRemove = Adjacency::kAddRemoveOne;

class FilterTest : public LedgerTest {
 protected:
  // A fresh data set with this budget; answers its name.
  std::string fresh(double epsilon = 1, double delta = 1e-6) {
    std::string name = std::to_string(count_++);
    EXPECT_TRUE(ledger_.create(budget(name, epsilon, delta, kAddRemove)).ok());
    return name;
  }
  bool takes(const std::string& name, const PrivacyPlan& plan) { return accepts(ledger_, name, plan, kAddRemove); }
  std::string filter(const std::string& name) { return ledger_.show(name)->filter; }

  Ledger ledger_ = open();
  int count_ = 0;
};

double capacity(double epsilon = 1, double delta = 1e-6) {
  return gaussian_mu(*Epsilon::of(epsilon), *Delta::of(delta));
}

TEST_F(FilterTest, AnExactFitIsTakenAndOneUlpMoreIsRefused) {
  const double mu = capacity();
  const double over = std::nextafter(mu, 1);
  auto name = fresh();
  EXPECT_TRUE(takes(name, gaussian(mu)));
  EXPECT_THAT(filter(name), StartsWith("Gaussian"));
  EXPECT_FALSE(takes(name, gaussian(1e-12)));
  // mu/2 has the same digits as mu: four of them are the whole budget to the last bit.
  name = fresh();
  EXPECT_TRUE(takes(name, gaussian(mu / 2)));
  EXPECT_FALSE(takes(name, gaussian(std::nextafter(mu / 2, 1), 3)));
  EXPECT_TRUE(takes(name, gaussian(mu / 2, 3)));
  EXPECT_FALSE(takes(name, gaussian(1e-17)));
  name = fresh();
  EXPECT_TRUE(takes(name, gaussian(mu / 2)));
  EXPECT_FALSE(takes(name, gaussian(over / 2, 3)));
}

TEST_F(FilterTest, ManySmallAnswersThatRoundToNothingInDoublesStillCount) {
  // Each adds 2^-60 of the budget: a sum of doubles would not move.
  const double mu = capacity();
  const auto name = fresh();
  ASSERT_TRUE(takes(name, gaussian(std::ldexp(mu, -1), 3)));
  ASSERT_TRUE(takes(name, gaussian(std::ldexp(mu, -30), (1LL << 58) - 2)));
  EXPECT_FALSE(takes(name, gaussian(std::ldexp(mu, -30), 3)));
}

TEST_F(FilterTest, TheOrderOfThePlansDoesNotMatter) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<PrivacyPlan> plans;
    double sum = 0;
    for (int i = 0; i < 5; ++i) {
      plans.push_back(gaussian(std::exp(std::normal_distribution<>(-1, 2)(random)), 1 + random() % 400));
      sum += std::pow(std::get<GaussianEvent>(plans.back().events[0].mechanism).mu, 2) *
             static_cast<double>(plans.back().events[0].count);
    }
    // Scaled to within an ulp or so of the budget: some sets fit and some do not, but in every order alike.
    for (auto& plan : plans) std::get<GaussianEvent>(plan.events[0].mechanism).mu *= capacity() / std::sqrt(sum);
    std::optional<bool> verdict;
    for (int order = 0; order < 6; ++order) {
      std::shuffle(plans.begin(), plans.end(), random);
      const auto name = fresh();
      bool all = true;
      for (const auto& plan : plans) all = takes(name, plan) && all;
      EXPECT_EQ(verdict.value_or(all), all);
      verdict = all;
    }
  }
}

TEST_F(FilterTest, APlanCalibratedToTheBudgetFitsAFreshDataSet) {
  const std::vector<PrivacyPlan> shapes = {
      gaussian(1),
      gaussian(1, 17),
      join(gaussian(1, 3), gaussian(0.37, 1000)),
      pure(1),
      pure(1, 50),
      join(gaussian(1, 8), pure(0.25, 8)),
      join(gaussian(1), pure(3)),
      poisson(0.01, 1, 500),
      join(join(poisson(0.02, 2, 100), gaussian(0.2)), pure(0.1)),
  };
  for (const auto& [epsilon, delta] : {std::pair{1.0, 1e-6}, {0.1, 1e-9}, {8.0, 1e-5}, {3.0, 0.01}})
    for (const auto& shape : shapes)
      for (const auto accounting : {Accounting::kTight, Accounting::kZcdp}) {
        const auto plan = calibrate(shape, *Epsilon::of(epsilon), *Delta::of(delta), accounting);
        if (!plan.ok()) continue;  // zcdp knows no Poisson samples
        const auto name = fresh(epsilon, delta);
        EXPECT_TRUE(takes(name, *plan)) << to_text(plan->events[0]) << " at " << epsilon << ", " << delta;
        EXPECT_LE(ledger_.show(name)->spent_epsilon, epsilon);
        EXPECT_GT(ledger_.show(name)->spent_epsilon, accounting == Accounting::kTight ? 0.9 * epsilon : 0.1 * epsilon);
      }
}

TEST_F(FilterTest, AGaussianFirstPlanFixesTheGaussianFilterWhichTakesPureAnswersButNoSamples) {
  const auto name = fresh();
  EXPECT_EQ(filter(name), "open");
  ASSERT_TRUE(takes(name, gaussian(0.5 * capacity())));
  EXPECT_THAT(filter(name), StartsWith("Gaussian"));
  EXPECT_TRUE(takes(name, pure(0.05)));
  EXPECT_FALSE(takes(name, poisson(0.001, 10, 1)));
  EXPECT_THAT(filter(name), StartsWith("Gaussian"));
}

TEST_F(FilterTest, AFirstPlanWithSamplesFixesTheRenyiFilterWhichTakesEverything) {
  const auto name = fresh(2);
  ASSERT_TRUE(takes(name, poisson(0.01, 1.5, 300)));
  const std::string first = filter(name);
  EXPECT_THAT(first, StartsWith("Renyi"));
  EXPECT_TRUE(takes(name, gaussian(0.05)));
  EXPECT_TRUE(takes(name, pure(0.05)));
  EXPECT_TRUE(takes(name, poisson(0.01, 1.5, 300)));
  EXPECT_FALSE(takes(name, poisson(0.01, 1.5, 30000)));
  EXPECT_EQ(filter(name), first);
}

TEST_F(FilterTest, APureFirstPlanTooLargeForTheGaussianFilterIsHeldByTheRenyiFilter) {
  const auto name = fresh();
  ASSERT_TRUE(takes(name, pure(0.5)));
  EXPECT_THAT(filter(name), StartsWith("Renyi"));
  EXPECT_TRUE(takes(name, pure(0.4)));
  EXPECT_FALSE(takes(name, pure(0.4)));
}

TEST_F(FilterTest, AFirstPlanThatOnlyItsOwnCertificateCoversFillsTheDataSet) {
  const auto name = fresh();
  const auto plan = calibrate(join(gaussian(1, 8), pure(2, 2)), *Epsilon::of(1), *Delta::of(1e-6));
  ASSERT_TRUE(takes(name, *plan));
  EXPECT_THAT(filter(name), StartsWith("single"));
  EXPECT_FALSE(takes(name, gaussian(1e-9)));
  const auto status = ledger_.show(name);
  EXPECT_EQ(status->remaining_epsilon, 0);
  EXPECT_EQ(status->remaining, "nothing");
}

TEST_F(FilterTest, AFirstPlanAboveTheBudgetIsRefusedAndLeavesTheDataSetOpen) {
  const auto name = fresh();
  for (const PrivacyPlan& plan : {gaussian(1.001 * capacity()), pure(1.01), poisson(0.1, 0.5, 100)})
    EXPECT_FALSE(takes(name, plan));
  EXPECT_EQ(filter(name), "open");
  EXPECT_TRUE(ledger_.show(name)->reservations.empty());
}

TEST_F(FilterTest, OnceEverythingIsReturnedUnusedTheDataSetIsOpenAgain) {
  const auto name = fresh(2);
  for (int cycle = 0; cycle < 2; ++cycle) {
    auto sampled = ledger_.reserve(name, poisson(0.01, 1.5, 300), "");
    auto exact = ledger_.reserve(name, between(kAddRemove, gaussian(0.05)), "");
    ASSERT_TRUE(sampled.ok() && exact.ok());
    (*sampled)->close_unused();
    ASSERT_EQ(*ledger_.release_unused(name), 1);
    EXPECT_THAT(filter(name), StartsWith("Renyi")) << "one charge is left: the filter stays";
    (*exact)->close_unused();
    ASSERT_EQ(*ledger_.release_unused(name), 1);
    EXPECT_EQ(filter(name), "open");
    EXPECT_EQ(ledger_.show(name)->spent_epsilon, 0);
  }
  ASSERT_TRUE(takes(name, gaussian(capacity(2))));
  EXPECT_THAT(filter(name), StartsWith("Gaussian"));
}

// By the error function alone, as an independent check of what the filters let through.
double phi(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// Phi(-mu/2) = 1 / (1 + e^eps)
double mu_of_pure_by_bisection(double epsilon) {
  double low = 0;
  double high = 50;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (phi(-middle / 2) > 1 / (1 + std::exp(epsilon)) ? low : high) = middle;
  }
  return low;
}

double gaussian_delta(double mu, double epsilon) {
  return phi(mu / 2 - epsilon / mu) - std::exp(epsilon) * phi(-mu / 2 - epsilon / mu);
}

TEST_F(FilterTest, AGreedyAnalystNeverExceedsAGaussianBudget) {
  std::mt19937 random(3);
  for (const double epsilon : {0.2, 1.0, 5.0}) {
    const auto name = fresh(epsilon, 1e-5);
    double mu_squared = 0;
    for (int i = 0; i < 60; ++i) {
      // Each plan follows from what remained: now greedy, now cautious, now with pure answers.
      const double remaining = ledger_.show(name)->remaining_epsilon;
      const double mu = capacity(epsilon, 1e-5) * std::uniform_real_distribution<>(0, remaining / epsilon)(random);
      const double pure_epsilon = i % 3 == 0 ? 0.01 * remaining : 0;
      const PrivacyPlan plan = pure_epsilon > 0 ? join(gaussian(mu), pure(pure_epsilon)) : gaussian(mu);
      if (takes(name, plan)) mu_squared += mu * mu + std::pow(mu_of_pure_by_bisection(pure_epsilon), 2);
    }
    EXPECT_LE(gaussian_delta(std::sqrt(mu_squared), epsilon), 1e-5 * (1 + 1e-9));
    EXPECT_GT(ledger_.show(name)->spent_epsilon, 0.95 * epsilon);
    EXPECT_LE(ledger_.show(name)->spent_epsilon, epsilon);
  }
}

TEST_F(FilterTest, AGreedyAnalystNeverExceedsARenyiBudget) {
  std::mt19937 random(5);
  const auto name = fresh(1, 1e-6);
  ASSERT_TRUE(takes(name, poisson(0.01, 2, 100)));
  std::vector<PrivacyPlan> taken = {poisson(0.01, 2, 100)};
  for (int i = 0; i < 60; ++i) {
    PrivacyPlan plan = gaussian(std::uniform_real_distribution<>(0.001, 0.1)(random));
    if (i % 3 == 0) plan = pure(std::uniform_real_distribution<>(0.001, 0.1)(random));
    if (i % 3 == 1) plan = poisson(0.01, 2, 1 + static_cast<long long>(random() % 200));
    if (takes(name, plan)) taken.push_back(plan);
  }
  ASSERT_GT(taken.size(), 5U);
  EXPECT_GT(ledger_.show(name)->spent_epsilon, 0.9);
  // Order alpha as the filter's words tell it; divergences by numerical integration, not by the ledger's formulas.
  const std::string words = filter(name);
  const double alpha = std::stod(words.substr(words.find("order ") + 6));
  double total = 0;
  for (const auto& plan : taken) {
    const auto& event = plan.events[0];
    double one = 0;
    if (const auto* g = std::get_if<GaussianEvent>(&event.mechanism)) one = alpha * g->mu * g->mu / 2;
    if (const auto* p = std::get_if<PureEvent>(&event.mechanism)) {
      const double yes = std::exp(p->epsilon) / (1 + std::exp(p->epsilon));
      one = std::log(std::pow(yes, alpha) * std::pow(1 - yes, 1 - alpha) +
                     std::pow(1 - yes, alpha) * std::pow(yes, 1 - alpha)) /
            (alpha - 1);
    }
    if (const auto* s = std::get_if<PoissonGaussianEvent>(&event.mechanism)) {
      double integral = 0;
      const double step = 1e-3;
      for (int i = 0; i < static_cast<int>((80 + alpha) / step); ++i) {
        const double x = -40 + i * step;
        const double z = x / s->sigma;
        const double ratio = 1 - s->q + s->q * std::exp((2 * x - 1) / (2 * s->sigma * s->sigma));
        integral += step * std::exp(-z * z / 2 + alpha * std::log(ratio)) / (s->sigma * std::sqrt(2 * M_PI));
      }
      one = std::log(integral) / (alpha - 1);
    }
    total += one * static_cast<double>(event.count);
  }
  // delta = e^((alpha-1)(r - eps)) / (alpha-1) * (1 - 1/alpha)^alpha
  const double log_delta = (alpha - 1) * (total - 1) - std::log(alpha - 1) + alpha * std::log1p(-1 / alpha);
  EXPECT_LE(log_delta, std::log(1e-6) + 1e-6);
  EXPECT_GT(log_delta, std::log(1e-6) - 3);
}

}  // namespace
}  // namespace eigenveil::test
