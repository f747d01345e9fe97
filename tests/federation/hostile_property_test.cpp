// SPDX-License-Identifier: Apache-2.0
// Coordinators that say anything at all: for every answer that a site gives, the noise of its plan is in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hostile.hpp"

namespace eigenveil::federation {
namespace {

using test::integers;
using test::StudyLab;

/// Whatever is answered is the exact sum with the planned noise, to the bit; and the ledger has paid for at least what
/// was answered.
class HostileProperty : public ::testing::Test {
 protected:
  // Thousands of studies, each durable: in memory, where that takes no time.
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }

  std::size_t messages = 0;
  std::size_t answered = 0;
  test::Hostile hostile{20261117};

  void one_study() {
    const auto half = [&] { return hostile.below(2) == 0; };
    StudyLab lab(half() ? 1 : 3, half() ? Adjacency::kReplaceOne : Adjacency::kAddRemoveOne);
    hostile.begin_ledger();
    hostile.make_plan(lab);
    ++messages;
    if (hostile.below(5) == 0) {
      hostile.spoil(lab.proposal);
      if (!lab.begin().ok()) return;
    } else {
      const auto begun = lab.begin();
      ASSERT_TRUE(begun.ok()) << begun.error().message;
    }
    std::vector<wire::v2::Ask> asked;
    for (const auto* planned : test::Hostile::in_order(lab.proposal)) {
      auto ask = lab.ask(planned->label());
      if (hostile.below(6) == 0) hostile.spoil(ask);
      ++messages;
      const auto expected = test::Hostile::expected(lab, ask, *planned, asked);
      const auto stored = lab.send(0, ask);
      if (!stored.ok()) {
        EXPECT_FALSE(lab.send(0, lab.ask(planned->label())).ok()) << "after a refusal everything is refused";
        return;
      }
      ASSERT_TRUE(expected.has_value() || ask.has_recenter()) << ask.ShortDebugString();
      ASSERT_NO_FATAL_FAILURE(hostile.compare(lab, ask, integers(*stored), expected, *planned, asked));
      lab.sent(ask);
      asked.push_back(ask);
      EXPECT_EQ(lab.work(0)->step, asked.size()) << "the ledger has every answer";
      if (ask.has_recenter()) {
        EXPECT_EQ(stored->answer.entries(), 0U);
        continue;
      }
      ++answered;
      hostile.answered(*planned);
      hostile.expect_paid(lab);
    }
  }
};

TEST_F(HostileProperty, WhateverIsAnsweredHasTheNoiseOfThePlan) {
  const bool nightly = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  const std::size_t most = nightly ? 100'000 : 2'000;
  while (messages < most && !HasFatalFailure()) one_study();
  EXPECT_GT(answered, most / 10);
  EXPECT_GT(hostile.totals(), most / 50);
  hostile.expect_planned_deviation();
}

}  // namespace
}  // namespace eigenveil::federation
