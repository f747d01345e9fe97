// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace eigenveil {
namespace {

// The same cases in every run; RC_PARAMS in the environment overrides it.
[[maybe_unused]] const bool kSeeded = ::setenv("RC_PARAMS", "seed=20261115", 0) == 0;

using ::testing::HasSubstr;

void expect_refusal(const std::string& text, const std::string& part) {
  const auto event = event_from_text(text);
  ASSERT_FALSE(event.ok()) << text;
  EXPECT_EQ(event.error().code, ErrorCode::kUsage);
  EXPECT_THAT(event.error().message, HasSubstr(part));
}

TEST(EventText, ReadsTheThreeKinds) {
  EXPECT_EQ(*event_from_text("gaussian:mu=0.2,count=8"), (PrivacyEvent{"", GaussianEvent{0.2}, 8}));
  EXPECT_EQ(*event_from_text("pure:epsilon=0.05"), (PrivacyEvent{"", PureEvent{0.05}, 1}));
  EXPECT_EQ(*event_from_text("poisson-gaussian:q=0.01,sigma=1,count=1000"),
            (PrivacyEvent{"", PoissonGaussianEvent{0.01, 1}, 1000}));
  EXPECT_EQ(*event_from_text("poisson-gaussian:count=2,sigma=1e-3,q=1"),
            (PrivacyEvent{"", PoissonGaussianEvent{1, 1e-3}, 2}));
}

TEST(EventText, IsReadBackBitForBit) {
  EXPECT_TRUE(rc::check("text -> event -> text", [] {
    const auto positive = [] { return std::exp(*rc::gen::inRange(-4000, 4000) / 100.0); };
    const Mechanism mechanism =
        *rc::gen::element<Mechanism>(GaussianEvent{positive()}, PureEvent{std::min(100.0, positive())},
                                     PoissonGaussianEvent{std::min(1.0, positive()), positive()});
    const PrivacyEvent event{"", mechanism, *rc::gen::inRange<long long>(1, 1LL << 60)};
    RC_ASSERT(*event_from_text(to_text(event)) == event);
  }));
}

TEST(EventText, RefusesWhatItCannotReadAndNamesIt) {
  expect_refusal("", "no ':'");
  expect_refusal("laplace:epsilon=1", "unknown kind 'laplace'");
  expect_refusal("gaussian:", "lacks mu");
  expect_refusal("gaussian:mu", "'mu', which is no field=value");
  expect_refusal("gaussian:mu=1x", "mu='1x'");
  expect_refusal("gaussian:mu=", "mu=''");
  expect_refusal("gaussian:mu=1,mu=2", "gives mu twice");
  expect_refusal("gaussian:mu=1,sigma=2", "unknown field sigma");
  expect_refusal("pure:epsilon=1,count=1.5", "count='1.5'");
  expect_refusal("pure:epsilon=1,count=99999999999999999999", "count='99999999999999999999'");
  expect_refusal("poisson-gaussian:q=0.5", "lacks sigma");
}

TEST(EventText, RefusesNumbersThatAreNotFinite) {
  expect_refusal("gaussian:mu=inf", "mu='inf'");
  expect_refusal("gaussian:mu=nan", "mu='nan'");
  expect_refusal("pure:epsilon=1e999", "epsilon='1e999'");
}

TEST(EventText, RefusesParametersThatMeanNothing) {
  expect_refusal("gaussian:mu=0", "mu must lie between");
  expect_refusal("gaussian:mu=-1", "but is -1");
  expect_refusal("pure:epsilon=0", "epsilon of a pure answer");
  expect_refusal("poisson-gaussian:q=0,sigma=1", "the sampling rate q");
  expect_refusal("poisson-gaussian:q=1.0001,sigma=1", "but is 1.0001");
  expect_refusal("poisson-gaussian:q=0.5,sigma=0", "the noise multiplier sigma");
  expect_refusal("gaussian:mu=1,count=0", "count of a privacy event must be at least 1, but is 0");
  expect_refusal("gaussian:mu=1,count=-3", "but is -3");
}

}  // namespace
}  // namespace eigenveil
