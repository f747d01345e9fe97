#include "eigenveil/query/meter.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace eigenveil {
namespace {

PrivacyPlan plan() {
  return {{{"mean", GaussianEvent{0.1}, 1}, {"search", PureEvent{0.05}, 2}, {"step", GaussianEvent{0.2}, 2}}};
}

void expect_closed(Meter& meter) {
  EXPECT_FALSE(meter.complete());
  EXPECT_FALSE(meter.admit("mean", GaussianEvent{0.1}).ok());
  EXPECT_FALSE(meter.admit("step", GaussianEvent{1e-9}).ok());
}

TEST(Meter, LetsThePlanThroughInOrder) {
  Meter meter(plan());
  EXPECT_TRUE(meter.admit("mean", GaussianEvent{0.1}).ok());
  EXPECT_TRUE(meter.admit("search", PureEvent{0.05}).ok());
  EXPECT_TRUE(meter.admit("search", PureEvent{0.01}).ok()) << "more noise than planned is fine";
  EXPECT_TRUE(meter.admit("step", GaussianEvent{0.2}).ok());
  EXPECT_FALSE(meter.complete());
  EXPECT_TRUE(meter.admit("step", GaussianEvent{0.2}).ok());
  EXPECT_TRUE(meter.complete());
}

TEST(Meter, RefusesAnAskBeyondThePlanAndThenEverything) {
  Meter meter({{{"mean", GaussianEvent{0.1}, 1}}});
  EXPECT_TRUE(meter.admit("mean", GaussianEvent{0.1}).ok());
  EXPECT_FALSE(meter.admit("mean", GaussianEvent{0.1}).ok());
  expect_closed(meter);
}

TEST(Meter, RefusesTheSameAskTwice) {
  Meter meter(plan());
  EXPECT_TRUE(meter.admit("mean", GaussianEvent{0.1}).ok());
  EXPECT_FALSE(meter.admit("mean", GaussianEvent{0.1}).ok());
  expect_closed(meter);
}

TEST(Meter, RefusesAnAskOutOfOrder) {
  Meter meter(plan());
  EXPECT_FALSE(meter.admit("step", GaussianEvent{0.2}).ok());
  expect_closed(meter);
}

TEST(Meter, RefusesLessNoiseThanPlanned) {
  Meter gaussian(plan());
  EXPECT_FALSE(gaussian.admit("mean", GaussianEvent{0.1000001}).ok());
  expect_closed(gaussian);
  Meter pure({{{"search", PureEvent{0.05}, 1}}});
  EXPECT_FALSE(pure.admit("search", PureEvent{0.0500001}).ok());
  Meter nan(plan());
  EXPECT_FALSE(nan.admit("mean", GaussianEvent{std::nan("")}).ok());
}

TEST(Meter, RefusesAnotherMechanism) {
  Meter meter(plan());
  EXPECT_FALSE(meter.admit("mean", PureEvent{0.0001}).ok());
  expect_closed(meter);
}

}  // namespace
}  // namespace eigenveil
