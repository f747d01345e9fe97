// SPDX-License-Identifier: Apache-2.0
// Coordinators that say anything at all: for every answer that a site gives, the noise of its plan is in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/extremes.hpp"
#include "tests/support/study_lab.hpp"

namespace eigenveil::federation {
namespace {

using test::extremes;
using test::integers;
using test::StudyLab;
using wire::v2::Kind;

/// Asks, proposals, orders, sets and numbers at random. Whatever is answered is the exact sum with the planned noise,
/// to the bit; and the ledger has paid for at least what was answered.
class HostileProperty : public ::testing::Test {
 protected:
  // Thousands of studies, each durable: in memory, where that takes no time.
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }
  std::uint64_t below(std::uint64_t n) { return random() % n; }
  std::uint32_t small(std::uint64_t n) { return static_cast<std::uint32_t>(below(n)); }
  double number() {
    if (below(3) == 0) return extremes()[below(extremes().size())];
    return std::ldexp(static_cast<double>(below(2000)) - 1000, static_cast<int>(below(40)) - 20);
  }
  std::string text() {
    static const std::vector<std::string> texts = {"",         "gram", "0",       "spare rounds",
                                                   "recentre", "\n",   "\x1b[2J", "gram "};
    return texts[below(texts.size())];
  }

  void make_plan(StudyLab& lab) {
    const std::uint64_t events = 1 + below(5);
    for (std::uint64_t i = 0; i < events; ++i) {
      const auto kind = static_cast<Kind>(1 + below(12));
      lab.plan(std::to_string(i), kind, 0.05 + 0.1 * static_cast<double>(below(10)), moves(kind) ? 1 : 1 + small(2));
    }
    lab.plan("last", Kind::GRAM);
    if (lab.configs.size() > 1) lab.secure(1, small(2), small(3));
  }
  static bool moves(Kind kind) { return moves_rows(kind); }

  void spoil(wire::v2::Proposal& proposal) {
    switch (below(12)) {
      case 0:
        proposal.mutable_plan(0)->set_mu(number());
        break;
      case 1:
        proposal.set_spare_mu(number());
        proposal.set_spares(1 + static_cast<std::uint32_t>(below(3)));
        break;
      case 2:
        proposal.set_epsilon(number());
        break;
      case 3:
        proposal.set_delta(number());
        break;
      case 4:
        proposal.set_shares(static_cast<std::uint32_t>(random()));
        break;
      case 5:
        proposal.set_lost(static_cast<std::uint32_t>(random()));
        break;
      case 6:
        proposal.mutable_plan(0)->set_count(static_cast<std::uint32_t>(random()));
        break;
      case 7:
        proposal.mutable_plan(0)->set_kind(static_cast<Kind>(below(20)));
        break;
      case 8:
        proposal.set_adjacency(text());
        break;
      case 9:
        proposal.mutable_rows()->set_radius(number());
        break;
      case 10:
        proposal.mutable_rows()->mutable_columns(0)->set_lower(number());
        break;
      default:
        proposal.set_not_after(static_cast<std::int64_t>(random()));
    }
  }

  void spoil(wire::v2::Ask& ask) {
    switch (below(14)) {
      case 0:
        ask.set_number(static_cast<std::uint32_t>(random()));
        break;
      case 1:
        ask.set_prev(hash("x", {text()}));
        break;
      case 2:
        ask.set_label(text());
        break;
      case 3:
        StudyLab::fill(ask, static_cast<Kind>(1 + below(12)));
        break;
      case 4:
        ask.set_repeats(static_cast<std::uint32_t>(below(4)));
        break;
      case 5:
        ask.add_among(text());
        break;
      case 6:
        if (ask.among_size() > 0) ask.mutable_among()->RemoveLast();
        break;
      case 7:
        ask.set_narrow(!ask.narrow());
        break;
      case 8:
        ask.set_chosen(static_cast<std::uint32_t>(random()));
        break;
      case 9:
        if (ask.has_recenter()) ask.mutable_recenter()->set_radius(number());
        break;
      case 10:
        if (ask.has_recenter() && ask.recenter().mean_size() > 0) ask.mutable_recenter()->set_mean(0, number());
        break;
      case 11:
        if (ask.has_exceedance()) ask.mutable_exceedance()->set_grid(static_cast<int>(below(4)), number());
        if (ask.has_search()) ask.mutable_search()->set_grid(static_cast<int>(below(4)), number());
        if (ask.has_product()) ask.mutable_product()->set_grid(static_cast<int>(below(4)), number());
        break;
      case 12:
        if (ask.sum().has_projected_gram()) ask.mutable_sum()->mutable_projected_gram()->set_radius(number());
        if (ask.sum().has_softmax_gradient()) ask.mutable_sum()->mutable_softmax_gradient()->set_clip(number());
        if (ask.sum().has_class_sums())
          ask.mutable_sum()->mutable_class_sums()->set_classes(static_cast<std::uint32_t>(random()));
        break;
      default:
        if (ask.sum().has_apply())
          ask.mutable_sum()->mutable_apply()->mutable_x()->set_scaled(0, static_cast<std::int32_t>(random()));
    }
  }

  /// The mu of every ask of the plan, in order.
  static std::vector<const wire::v2::PlannedAsk*> in_order(const wire::v2::Proposal& proposal) {
    std::vector<const wire::v2::PlannedAsk*> asks;
    for (const auto& planned : proposal.plan())
      for (std::uint32_t i = 0; i < std::min(planned.count(), 10U); ++i) asks.push_back(&planned);
    return asks;
  }

  std::size_t messages = 0;
  std::size_t answered = 0;
  double squares = 0;  // of the noise over its planned deviation
  std::size_t entries = 0;
  std::mt19937_64 random{20261117};

  void one_study() {
    StudyLab lab(below(2) == 0 ? 1 : 3, below(2) == 0 ? Adjacency::kReplaceOne : Adjacency::kAddRemoveOne);
    make_plan(lab);
    ++messages;
    if (below(5) == 0) {
      spoil(lab.proposal);
      if (!lab.begin().ok()) return;
    } else {
      const auto begun = lab.begin();
      ASSERT_TRUE(begun.ok()) << begun.error().message;
    }
    std::vector<wire::v2::Ask> asked;
    std::uint64_t paid = 0;
    for (const auto* planned : in_order(lab.proposal)) {
      auto ask = lab.ask(planned->label());
      if (below(6) == 0) spoil(ask);
      ++messages;
      std::optional<test::Expected> expected;
      const bool usual = ask.label() == planned->label() && kind_of(ask) == planned->kind();
      try {
        if (usual && !ask.has_recenter()) expected = lab.expected(0, ask, planned->mu(), lab.rows(0, asked));
      } catch (const std::exception&) {
        // no such sum: then it must not be answered either
      }
      const auto stored = lab.send(0, ask);
      if (!stored.ok()) {
        EXPECT_FALSE(lab.send(0, lab.ask(planned->label())).ok()) << "after a refusal everything is refused";
        return;
      }
      lab.sent(ask);
      asked.push_back(ask);
      ++paid;
      EXPECT_EQ(lab.work(0)->step, paid) << "the ledger has every answer";
      if (ask.has_recenter()) {
        EXPECT_EQ(stored->answer.entries(), 0U);
        continue;
      }
      ++answered;
      ASSERT_TRUE(expected.has_value()) << ask.ShortDebugString();
      compare(lab, ask, integers(*stored), *expected);
    }
  }

  void compare(const StudyLab& lab, const wire::v2::Ask& ask, std::vector<Int128> values,
               const test::Expected& expected) {
    const bool secure = lab.proposal.aggregation() == wire::v2::Proposal::SECURE;
    ASSERT_EQ(values.size(), expected.sum.values.size());
    const double shares = secure ? lab.proposal.shares() : 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Int128 due = (expected.sum.values[i] << expected.scale.shift) + expected.noise[i];
      const Int128 open = ask.narrow() ? narrowed(due) : due;
      EXPECT_EQ(values[i] == open, !secure) << "masked, or exactly this";
      const bool off = expected.sum.layout == PrivateSum::Layout::kSymmetric && expected.sum.rows == 2 && i == 1;
      const double deviation =
          std::ldexp(off ? expected.scale.deviation_off() : expected.scale.deviation(), expected.scale.shift) /
          std::sqrt(shares);
      const double z = static_cast<double>(expected.noise[i]) / deviation;
      EXPECT_GT(std::abs(z), 1e-11) << "no noise";  // false alarms: 8e-12 each
      squares += z * z;
      ++entries;
    }
  }
};

TEST_F(HostileProperty, WhateverIsAnsweredHasTheNoiseOfThePlan) {
  const bool nightly = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  const std::size_t most = nightly ? 100'000 : 2'000;
  while (messages < most && !HasFatalFailure()) one_study();
  EXPECT_GT(answered, most / 10);
  const double spread = std::sqrt(2.0 / static_cast<double>(entries));
  EXPECT_NEAR(squares / static_cast<double>(entries), 1, 6 * spread);  // false alarms: 2e-9
}

}  // namespace
}  // namespace eigenveil::federation
