// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "tests/support/extremes.hpp"
#include "tests/support/study_lab.hpp"

namespace eigenveil::test {

/// A coordinator that says anything at all: asks, proposals, orders, sets and numbers at random. Knows the exact sum
/// and the noise of the plan for whatever may be answered, and holds answers against them.
class Hostile {
 public:
  explicit Hostile(std::uint64_t seed) : random(seed) {}

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
      const auto kind = static_cast<wire2::Kind>(1 + below(12));
      lab.plan(std::to_string(i), kind, 0.05 + 0.1 * static_cast<double>(below(10)),
               federation::moves_rows(kind) ? 1 : 1 + small(2));
    }
    lab.plan("last", wire2::Kind::GRAM);
    if (lab.configs.size() > 1) lab.secure(1, small(2), small(3));
  }

  void spoil(wire2::Proposal& proposal) {
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
        proposal.mutable_plan(0)->set_kind(static_cast<wire2::Kind>(below(20)));
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

  void spoil(wire2::Ask& ask) {
    switch (below(14)) {
      case 0:
        ask.set_number(static_cast<std::uint32_t>(random()));
        break;
      case 1:
        ask.set_prev(federation::hash("x", {text()}));
        break;
      case 2:
        ask.set_label(text());
        break;
      case 3:
        StudyLab::fill(ask, static_cast<wire2::Kind>(1 + below(12)));
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
  static std::vector<const wire2::PlannedAsk*> in_order(const wire2::Proposal& proposal) {
    std::vector<const wire2::PlannedAsk*> asks;
    for (const auto& planned : proposal.plan())
      for (std::uint32_t i = 0; i < std::min(planned.count(), 10U); ++i) asks.push_back(&planned);
    return asks;
  }

  /// What the answer to `ask`, made where `planned` is due, must be before masks; nothing if it must not be answered,
  /// or has no integers.
  static std::optional<Expected> expected(const StudyLab& lab, const wire2::Ask& ask, const wire2::PlannedAsk& planned,
                                          const std::vector<wire2::Ask>& asked) {
    const bool usual = ask.label() == planned.label() && federation::kind_of(ask) == planned.kind();
    if (!usual || ask.has_recenter()) return std::nullopt;
    try {
      return lab.expected(0, ask, planned.mu(), lab.rows(0, asked));
    } catch (const std::exception&) {
      return std::nullopt;  // no such sum
    }
  }

  /// That what site 0 answered is the exact sum with the planned noise: as it is, or where it is masked, once the
  /// answers of the others are added to it. They hear the same asks; `ask` is not yet part of the lab's history.
  void compare(StudyLab& lab, const wire2::Ask& ask, std::vector<Int128> values,
               const std::optional<Expected>& expected, const wire2::PlannedAsk& planned,
               const std::vector<wire2::Ask>& asked) {
    const bool secure = lab.proposal.aggregation() == wire2::Proposal::SECURE;
    std::vector<Int128> total(values.size());
    std::vector<Int128> due(values.size());
    std::size_t others = 0;
    for (std::size_t i = 0; i < lab.configs.size(); ++i) {
      if (std::find(ask.among().begin(), ask.among().end(), Certificates::site(i)) == ask.among().end()) continue;
      const auto own = i == 0 || ask.has_recenter()
                           ? expected
                           : std::optional(lab.expected(i, ask, planned.mu(), lab.rows(i, asked)));
      if (i > 0) {
        const auto stored = lab.send(i, ask);
        ASSERT_TRUE(stored.ok()) << "one site answers, the other does not: " << stored.error().message;
        if (!ask.has_recenter()) values = integers(*stored);
        ++others;
      }
      if (!own) continue;
      ASSERT_EQ(values.size(), own->sum.values.size());
      std::vector<Int128> mine(values.size());
      for (std::size_t k = 0; k < values.size(); ++k) {
        mine[k] = sum_of((own->sum.values[k] << own->scale.shift), own->noise[k], ask.narrow());
        total[k] = sum_of(total[k], values[k], ask.narrow());
        due[k] = sum_of(due[k], mine[k], ask.narrow());
        expect_noise(*own, k, secure ? lab.proposal.shares() : 1);
      }
      if (secure && !values.empty()) {
        EXPECT_NE(values, mine) << "an answer without masks";
      }
      if (!secure) {
        EXPECT_EQ(values, mine);
      }
    }
    EXPECT_EQ(total, due) << "what all of them answered";
    if (secure && others > 0) ++totals_;
  }

  /// Masked totals that were compared.
  std::size_t totals() const { return totals_; }

  /// An answer with noise of this mu has left.
  void answered(const wire2::PlannedAsk& planned) { answered_ += planned.mu() * planned.mu(); }
  /// That the ledger of site 0 has paid for at least everything that has left since the last `begin_ledger`.
  void expect_paid(const StudyLab& lab) const {
    double paid = 0;
    const auto status = Ledger::open(lab.configs[0].ledger)->show("rows");
    for (const auto& reservation : status->reservations)
      if (reservation.state != ReservationState::kReturned)
        for (const auto& event : reservation.plan.events)
          if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism))
            paid += gaussian->mu * gaussian->mu * static_cast<double>(event.count);
    EXPECT_GE(paid, answered_ * (1 - 1e-9)) << "more was answered than paid for";
  }
  void begin_ledger() { answered_ = 0; }

  /// That the noise of all answers has the planned deviation. False alarms: below 1e-6 from 200 integers on.
  void expect_planned_deviation() const {
    const double spread = std::sqrt(2.0 / static_cast<double>(entries_));
    EXPECT_NEAR(squares_ / static_cast<double>(entries_), 1, 6 * spread);
  }

  std::mt19937_64 random;

 private:
  static Int128 sum_of(Int128 a, Int128 b, bool narrow) {
    const auto sum = static_cast<Int128>(static_cast<UInt128>(a) + static_cast<UInt128>(b));
    return narrow ? narrowed(sum) : sum;
  }
  void expect_noise(const Expected& expected, std::size_t entry, double shares) {
    const bool off = expected.sum.layout == PrivateSum::Layout::kSymmetric && expected.sum.rows == 2 && entry == 1;
    const double deviation =
        std::ldexp(off ? expected.scale.deviation_off() : expected.scale.deviation(), expected.scale.shift) /
        std::sqrt(shares);
    const double z = static_cast<double>(expected.noise[entry]) / deviation;
    EXPECT_GT(std::abs(z), 1e-11) << "no noise";  // false alarms: 8e-12 each
    squares_ += z * z;
    ++entries_;
  }

  double answered_ = 0;  // mu^2
  std::size_t totals_ = 0;
  double squares_ = 0;  // of the noise over its planned deviation
  std::size_t entries_ = 0;
};

}  // namespace eigenveil::test
