// SPDX-License-Identifier: Apache-2.0
// Every line of src/privacy/slack.md: that it is true, and that every plan pays it (transforms: fourier_test.cpp).
#include "src/privacy/slack.hpp"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/privacy/least_delta.hpp"
#include "eigenveil/privacy/pld.hpp"
#include "eigenveil/privacy/renyi.hpp"
#include "eigenveil/privacy/samplers.hpp"
#include "src/privacy/loss.hpp"
#include "src/privacy/normal.hpp"

namespace eigenveil {
namespace {

using Events = std::vector<PrivacyEvent>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const PrivacyEvent kGaussian{"", GaussianEvent{0.3}, 2};
const PrivacyEvent kPure{"", PureEvent{0.2}, 3};
const PrivacyEvent kPoisson{"", PoissonGaussianEvent{0.05, 1.1}, 20};

// All non-empty sets of kinds.
std::vector<Events> every_kind_of_plan() {
  std::vector<Events> plans;
  for (int mask = 1; mask < 8; ++mask) {
    Events events;
    if (mask & 1) events.push_back(kGaussian);
    if (mask & 2) events.push_back(kPure);
    if (mask & 4) events.push_back(kPoisson);
    plans.push_back(events);
  }
  return plans;
}

bool has_gaussian_noise(const Events& events) {
  return std::any_of(events.begin(), events.end(),
                     [](const auto& event) { return !std::holds_alternative<PureEvent>(event.mechanism); });
}

// Computed from the ideal curves and the table's lines, here, line by line.
TEST(Slack, IsPaidByEveryPlanInEpsilonAndInDelta) {
  for (const Events& events : every_kind_of_plan()) {
    double answers = 0;
    for (const auto& event : events) answers += static_cast<double>(event.count);
    const bool gaussian = has_gaussian_noise(events);
    const double epsilon = gaussian ? slack::kLatticeEpsilon : 0;
    const double log_factor =
        (gaussian ? slack::kLatticeLogDelta : 0) + slack::kCurve + slack::kSums + slack::kAnswer * answers;
    const double left = std::log(1e-6) - log_factor;
    const bool closed = events.size() == 1 && std::holds_alternative<GaussianEvent>(events[0].mechanism);
    const double mu = 0.3 * std::sqrt(2.0);
    const double ideal = closed ? gaussian_epsilon(mu, left) : pld_epsilon(events, left);
    const double paid = *epsilon_of(events, *Delta::of(1e-6));
    EXPECT_GE(paid, ideal + epsilon) << to_text(events[0]);
    EXPECT_LE(paid, (ideal + epsilon) * (1 + 1e-9)) << to_text(events[0]);

    const double ideal_delta = closed ? gaussian_log_delta(mu, 1 - epsilon) : pld_log_delta(events, 1 - epsilon);
    EXPECT_GE(std::log(*delta_of(events, 1)), ideal_delta + log_factor) << to_text(events[0]);
  }
}

TEST(Slack, IsPaidUnderZcdpToo) {
  const double rho = 0.3 * 0.3;
  const double plain = *epsilon_of({kGaussian}, *Delta::of(1e-6), Accounting::kZcdp);
  // alpha rho + ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1), over a fine grid of alpha
  double ideal = kInfinity;
  for (double t = 0.01; t < 1000; t *= 1.0001)
    ideal = std::min(ideal, (1 + t) * rho - std::log1p(1 / t) + (-std::log(1e-6) - std::log1p(t)) / t);
  EXPECT_GE(plain, ideal * (1 - 1e-7) + slack::kLatticeEpsilon);
}

TEST(Slack, IsPaidByCalibratedPlansOfEveryKind) {
  for (const Events& events : every_kind_of_plan()) {
    PrivacyPlan shape = PrivacyPlan(Adjacency::kAddRemoveOne, events);
    const auto plan = calibrate(shape, *Epsilon::of(0.7), *Delta::of(1e-7));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const double certified = *epsilon_of(plan->events, *Delta::of(1e-7));
    EXPECT_LE(certified, 0.7);
    EXPECT_GE(certified, 0.7 * 0.999);
  }
}

// ln of 2^64 draws' chance to leave 60 deviations, by MPFR
double log_chance_of_leaving() {
  mpfr_t x;
  mpfr_init2(x, 100);
  mpfr_set_d(x, 60 - 0x1p-30, MPFR_RNDD);
  mpfr_div_d(x, x, std::sqrt(2.0) * (1 + 1e-15), MPFR_RNDD);
  mpfr_erfc(x, x, MPFR_RNDU);  // 2 Q(60)
  mpfr_log(x, x, MPFR_RNDU);
  const double result = mpfr_get_d(x, MPFR_RNDU) + 64 * std::numbers::ln2;
  mpfr_clear(x);
  mpfr_free_cache();
  return result;
}

TEST(Slack, CutOfTheGaussianNoiseHoldsOverTheWholeRangeOfEpsilonAndDelta) {
  EXPECT_LE(log_chance_of_leaving(), slack::kLogCut);
  const double worst = slack::kLogCut + slack::kLargestEpsilon;
  EXPECT_LT(worst, std::log(1e-300) - 60) << "nothing beside the smallest delta";
  EXPECT_FALSE(Epsilon::of(slack::kLargestEpsilon * (1 + 1e-15)).ok()) << "where the table ends, so does the type";
  EXPECT_FALSE(Delta::of(1e-300 * (1 - 1e-15)).ok());
  // At epsilon 2100 the cut would cost more than delta 1e-6: nothing may be certified there.
  EXPECT_GT(log_chance_of_leaving() + 2100, std::log(1e-6));
  for (const double mu : {60.0, 70.0, 1e3, 1e15})
    EXPECT_EQ(*epsilon_of({{"", GaussianEvent{mu}, 1}}, *Delta::of(1e-6)), kInfinity) << mu;
  EXPECT_EQ(*epsilon_of({{"", PureEvent{100}, 11}}, *Delta::of(1e-6)), kInfinity);
  EXPECT_FALSE(delta_of({kGaussian}, 1001).ok());
}

TEST(Slack, LeavesNothingWhereTheCutCostsAllOfDelta) {
  const slack::Slack all{0, 0, -1000 + std::log(1e-6)};
  EXPECT_EQ(slack::log_delta_left(all, std::log(1e-6)), -kInfinity);
  EXPECT_NEAR(slack::log_delta_left(all, std::log(2e-6)), std::log(1e-6), 1e-12);
  EXPECT_NEAR(slack::log_delta_with(all, std::log(1e-6), 1000), std::log(2e-6), 1e-12);
}

// P <= e^(eps + s) Q + d, so P <= e^eps Q + d + e^eps (e^s - 1).
TEST(Slack, CostsDeltaWhereEpsilonIsTooSmallToPay) {
  const slack::Slack lattice{1e-3, 0, -kInfinity};
  EXPECT_NEAR(std::exp(slack::log_delta_with(lattice, std::log(1e-5), 0)), 1e-5 + std::expm1(1e-3), 1e-9);
  EXPECT_NEAR(std::exp(slack::log_delta_with(lattice, std::log(1e-5), 4e-4)), 1e-5 + std::exp(4e-4) * std::expm1(6e-4),
              1e-9);
  EXPECT_NEAR(std::exp(slack::log_delta_with(lattice, std::log(1e-5), 1e-3)), 1e-5, 1e-15);
}

TEST(Slack, IsPaidByTheRenyiFiltersConversion) {
  for (const int alpha : {2, 16, 4096}) {
    const double plain =
        std::log1p(-1.0 / alpha) + (-std::log(1e-6) - std::log(static_cast<double>(alpha))) / (alpha - 1);
    EXPECT_GE(renyi_conversion(alpha, *Delta::of(1e-6)), plain + 0.9 * slack::kCurve / (alpha - 1));
  }
}

// The lattice's line: 151 D / s^2 + D / 8 s^2 for D = 2^35 integers of deviation s = 2^39.5, and e^(D / 8 s^2).
TEST(Slack, LatticeCoversTheIntegersOfAnyPlan) {
  const double D = 0x1p35, s2 = 0x1p79;
  EXPECT_LE(151 * D / s2 + D / (8 * s2), slack::kLatticeEpsilon);
  EXPECT_LE(D / (8 * s2), slack::kLatticeLogDelta);
}

// rows/people.proof.md: ids of at most 2^31 people collide with one of two others' with a chance of 2 2^31 2^-128.
TEST(Slack, IdsThatCollideArePaidForFromTheLeastDeltasOn) {
  const double chance = 2 * std::ldexp(1.0, 31 - 128);
  EXPECT_LE(chance / kLeastDeltaOfPeople, slack::kIds);
  EXPECT_LE(1e6 * chance / kLeastLimitOfPeople, slack::kIds);
  EXPECT_LE(slack::kIds + slack::kComputed, slack::kCurve);
  EXPECT_LE(slack::kIds, 0x1p-23) << "what the Gaussian filter has to spare";
  EXPECT_TRUE(check_delta_of_people(*Delta::of(kLeastDeltaOfPeople)).ok());
  EXPECT_FALSE(check_delta_of_people(*Delta::of(0.99 * kLeastDeltaOfPeople)).ok());
}

// A loss a hair above a grid point keeps its share above it, and both laws keep their total.
TEST(Slack, PureLossesAreNeverMovedDown) {
  for (const double hair : {1e-9, 1e-10, 1e-12, 1e-14, 0.0, -1e-14, -1e-10}) {
    const loss::Grid grid{.step = 0.01, .theta = 0, .log_tail = -50, .log_cut_low = -50};
    const double epsilon = 0.37 * (1 + hair);
    const auto masses = loss::discretise(PureEvent{epsilon}, loss::Direction::kRemove, grid);
    double p = 0, q = 0, at_loss = 0;
    for (std::size_t i = 0; i < masses.mass.size(); ++i) {
      const double index = static_cast<double>(masses.first) + static_cast<double>(i);
      const double mass = masses.mass[i] * std::exp(masses.log_scale);
      p += mass;
      q += mass * std::exp(-index * grid.step);
      at_loss += mass * std::max(0.0, -std::expm1(0.37 - index * grid.step));
    }
    EXPECT_NEAR(p, 1, 1e-14);
    EXPECT_NEAR(q, 1, 1e-14);
    const double truth = std::max(0.0, -std::expm1(0.37 - epsilon)) / (1 + std::exp(-epsilon));
    EXPECT_GE(at_loss, truth * (1 - 1e-4) - 2e-17) << "delta at the grid point, hair " << hair;
  }
}

// Phi(-mu / 2) <= 1 / (1 + e^eps), decided by MPFR in directed rounding: mu_of_pure is never too small.
TEST(Slack, MuOfAPureAnswerIsRoundedUp) {
  mpfr_t tail, corner;
  mpfr_inits2(200, tail, corner, nullptr);
  for (double epsilon = 1e-9; epsilon <= 100; epsilon *= 1.07) {
    const double mu = mu_of_pure(epsilon);
    mpfr_set_d(tail, mu, MPFR_RNDN);
    mpfr_div_d(tail, tail, 2, MPFR_RNDN);
    mpfr_set_ui(corner, 2, MPFR_RNDN);
    mpfr_sqrt(corner, corner, MPFR_RNDU);
    mpfr_div(tail, tail, corner, MPFR_RNDD);
    mpfr_erfc(tail, tail, MPFR_RNDU);
    mpfr_div_2ui(tail, tail, 1, MPFR_RNDU);
    mpfr_set_d(corner, epsilon, MPFR_RNDN);
    mpfr_exp(corner, corner, MPFR_RNDU);
    mpfr_add_ui(corner, corner, 1, MPFR_RNDU);
    mpfr_ui_div(corner, 1, corner, MPFR_RNDD);
    EXPECT_LE(mpfr_cmp(tail, corner), 0) << epsilon;
  }
  mpfr_clears(tail, corner, nullptr);
  mpfr_free_cache();
}

}  // namespace
}  // namespace eigenveil
