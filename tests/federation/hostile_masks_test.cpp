// SPDX-License-Identifier: Apache-2.0
// Coordinators and sites that want to see behind masks: other asks, sets and keys for some than for others, fewer
// shares of the noise, spare rounds that are none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/study_lab.hpp"

namespace eigenveil::federation {
namespace {

using test::Certificates;
using test::integers;
using test::StudyLab;
using ::testing::HasSubstr;
using wire::v2::Kind;

constexpr double kMu = StudyLab::kMu;

std::int64_t signed_part(Int128 x) { return static_cast<std::int64_t>(x); }

/// Total of what sites sent, as the coordinator decodes it.
std::vector<Int128> added(const std::vector<std::vector<Int128>>& answers, bool narrow) {
  std::vector<Int128> total(answers.front().size());
  for (const auto& values : answers)
    for (std::size_t i = 0; i < values.size(); ++i) {
      total[i] = static_cast<Int128>(static_cast<UInt128>(total[i]) + static_cast<UInt128>(values[i]));
      if (narrow) total[i] = signed_part(total[i]);
    }
  return total;
}

/// Four sites that hide among each other, and what their masked answers to one ask add up to.
class HostileMasks : public ::testing::Test {
 protected:
  HostileMasks() : lab(4) {
    lab.plan("recentre", Kind::RECENTER);
    lab.plan("apply", Kind::APPLY);
    lab.plan("product", Kind::PRODUCT);
    lab.secure();
  }
  using Change = std::function<void(wire::v2::Ask& first, wire::v2::Ask& second)>;
  /// The victim, site 0, hears the asks as they are; the others as they are changed.
  std::vector<Int128> total_when(const Change& change) {
    EXPECT_TRUE(lab.begin().ok());
    const Chain start = *lab.chain;
    std::vector<std::vector<Int128>> answers;
    for (std::size_t i = 0; i < 4; ++i) {
      lab.chain = start;
      auto first = lab.ask("recentre");
      auto unused = first;
      if (i > 0) change(first, unused);
      if (!lab.send(i, first).ok()) return {};
      lab.sent(first);
      auto second = lab.ask("apply");
      if (i > 0) change(unused, second);
      const auto answer = lab.send(i, second);
      if (!answer.ok()) return {};
      answers.push_back(integers(*answer));
    }
    return added(answers, false);
  }
  static bool decodes(const std::vector<Int128>& total) {
    const Int128 limit = Int128{1} << 100;
    return !total.empty() && std::all_of(total.begin(), total.end(), [&](Int128 x) { return x > -limit && x < limit; });
  }
  StudyLab lab;
};

TEST_F(HostileMasks, EqualAsksDecode) {
  EXPECT_TRUE(decodes(total_when([](auto&, auto&) {})));
}

TEST_F(HostileMasks, AnotherAskToTheOthersNeverDecodes) {
  for (const Change& change :
       std::vector<Change>{[](auto&, auto&ask) {
                             if (ask.has_sum()) ask.mutable_sum()->mutable_apply()->mutable_x()->set_scaled(0, 629146);
                           },
                           [](auto&, auto&ask) { ask.set_narrow(true); },
                           [](auto&ask, auto&) { ask.mutable_recenter()->set_mean(0, std::nextafter(0.25, 1)); },
                           [](auto&ask, auto&) { ask.mutable_recenter()->set_radius(1e6); }}) {
    lab.proposal.set_study(draw_study());
    EXPECT_FALSE(decodes(total_when(change)));
  }
}

// Different plans, sets or times under one study number.
TEST_F(HostileMasks, AnotherProposalToTheOthersIsNotMet) {
  ASSERT_TRUE(lab.open(0).ok());
  auto other = lab.proposal;
  other.set_purpose("something else");
  for (std::size_t i = 1; i < 4; ++i) ASSERT_TRUE(lab.open(i, other).ok());
  const auto met = lab.studies[0]->meet(canonical_bytes(lab.roster()));
  ASSERT_FALSE(met.ok());
  EXPECT_THAT(met.error().message, HasSubstr("accepted something else"));
}

TEST_F(HostileMasks, ARosterThatIsNotAllSitesOwnWordIsRefused) {
  using Change = std::function<void(wire::v2::Roster&)>;
  const auto statement = [](wire::v2::Accept& accept, const std::function<void(wire::v2::AcceptStatement&)>& change) {
    wire::v2::AcceptStatement said;
    said.ParseFromString(accept.statement());
    change(said);
    accept.set_statement(canonical_bytes(said));
  };
  const auto resigned = [&](wire::v2::Accept& accept, const std::string& who,
                            const std::function<void(wire::v2::AcceptStatement&)>& change) {
    statement(accept, change);
    const auto identity = Certificates::shared().identity(who);
    accept.set_certificate(identity.certificate);
    accept.set_signature(*sign(identity.key, accept_statement(accept.statement())));
  };
  const std::vector<std::pair<const char*, Change>> changes = {
      {"a key that its site did not sign",
       [&](auto& r) { statement(*r.mutable_accepts(1), [](auto& s) { s.set_x25519(open_key(Secret::draw())); }); }},
      {"the key of another site as one's own",
       [&](auto& r) {
         wire::v2::AcceptStatement first;
         first.ParseFromString(r.accepts(2).statement());
         resigned(*r.mutable_accepts(1), "site-1", [&](auto& s) { s.set_x25519(first.x25519()); });
       }},
      {"a key of low order",
       [&](auto& r) {
         resigned(*r.mutable_accepts(1), "site-1", [](auto& s) { s.set_x25519(std::string(32, '\0')); });
       }},
      {"the coordinator as a site", [&](auto& r) { resigned(*r.mutable_accepts(1), "coordinator", [](auto&) {}); }},
      {"a stranger under a site's name", [&](auto& r) { resigned(*r.mutable_accepts(1), "site-6", [](auto&) {}); }},
      {"a stranger under his own name",
       [&](auto& r) { resigned(*r.mutable_accepts(1), "site-6", [](auto& s) { s.set_site("site-6"); }); }},
      {"another role",
       [&](auto& r) { resigned(*r.mutable_accepts(1), "site-1", [](auto& s) { s.set_role("coordinator"); }); }},
      {"one site twice", [](auto& r) { *r.add_accepts() = r.accepts(3); }},
      {"sites out of order", [](auto& r) { r.mutable_accepts()->SwapElements(1, 2); }},
      {"without the site itself", [](auto& r) { r.mutable_accepts()->DeleteSubrange(0, 1); }},
      {"too few", [](auto& r) { r.mutable_accepts()->DeleteSubrange(2, 2); }},
      {"another study", [](auto& r) { r.set_study(draw_study()); }}};
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    lab.proposal.set_study(draw_study());
    ASSERT_TRUE(lab.open_all().ok());
    auto roster = lab.roster();
    change(roster);
    EXPECT_FALSE(lab.studies[0]->meet(canonical_bytes(roster)).ok());
    EXPECT_FALSE(lab.studies[0]->meet(canonical_bytes(lab.roster())).ok()) << "and the study is over";
  }
}

TEST_F(HostileMasks, ASecondRosterIsRefused) {
  ASSERT_TRUE(lab.begin().ok());
  auto fewer = lab.roster();
  fewer.mutable_accepts()->RemoveLast();
  EXPECT_FALSE(lab.studies[0]->meet(canonical_bytes(fewer)).ok());
}

TEST_F(HostileMasks, SitesWhoseKeysAreNotKnownDoNotCount) {
  // Site 0 knows itself and one other: the other two could be anybody.
  lab.configs[0].peers = {{"site-0", lab.pins["site-0"]}, {"site-1", lab.pins["site-1"]}};
  EXPECT_FALSE(lab.begin().ok());
}

// k = N - c - l. Whatever set the coordinator asks, a site answers only if k of those it knows are left beside the c
// that may collude: their shares have all the variance that was charged.
TEST(HostileShares, OfHonestSitesAddUpToTheWholeNoise) {
  for (std::size_t n = 2; n <= 8; ++n)
    for (std::size_t c = 1; c < n; ++c)
      for (std::size_t l = 0; c + l < n; ++l) {
        const std::size_t k = n - c - l;
        PrivateSum zeros{PrivateSum::Layout::kPlain, 500, 1, Sensitivity(1), 1, std::vector<Int128>(500)};
        SecureRandom random = SecureRandom::insecure(100 * n + 10 * c + l);
        std::vector<double> honest(500);
        const auto scale = *GaussianMechanism::noise_for(zeros.moved, Mu(kMu));
        for (std::size_t site = 0; site < k; ++site) {
          const auto noisy = *GaussianMechanism::add_noise(zeros, Mu(kMu), k, random);
          for (std::size_t i = 0; i < 500; ++i)
            honest[i] += std::ldexp(static_cast<double>(noisy.values()[i]), -scale.shift);
        }
        double square = 0;
        for (const double x : honest) square += x * x / (scale.deviation() * scale.deviation()) / 500;
        EXPECT_GT(square, 1 - 5 * std::sqrt(2.0 / 500)) << n << " " << c << " " << l;  // false alarms: 3e-7 each
      }
}

TEST(HostileShares, AnotherKThanTheSitesLeaveIsRefused) {
  for (const std::uint32_t k : {0U, 4U, 5U, 1U << 31, UINT32_MAX}) {
    StudyLab lab(4);
    lab.plan("gram", Kind::GRAM);
    lab.secure();
    lab.proposal.set_shares(k);
    EXPECT_FALSE(lab.open(0).ok()) << k;
    EXPECT_EQ(lab.charges(0), 0U);
  }
}

// The proposal has enough sites that this one knows; those who then take part are what counts.
TEST(HostileShares, WhoIsIntroducedInPlaceOfAKnownSiteDoesNotCount) {
  for (const bool strangers : {false, true}) {
    StudyLab lab(5);
    lab.plan("gram", Kind::GRAM);
    lab.secure(1, 1);
    lab.proposal.set_shares(2);  // three that it knows are needed
    lab.configs[0].peers.erase("site-4");
    ASSERT_TRUE(lab.open_all().ok());
    auto roster = lab.roster();
    if (strangers)
      roster.mutable_accepts()->DeleteSubrange(2, 2);  // sites 0, 1 and 4
    else
      roster.mutable_accepts()->DeleteSubrange(3, 2);  // sites 0, 1 and 2
    EXPECT_EQ(lab.studies[0]->meet(canonical_bytes(roster)).ok(), !strangers);
  }
}

TEST(HostileShares, NoSiteAnswersForATotalOfTooFewOrOfOthers) {
  for (const auto& sites : std::vector<std::vector<std::string>>{{"site-0"},
                                                                 {"site-0", "site-1"},
                                                                 {"site-0", "site-0", "site-1"},
                                                                 {"site-1", "site-2", "site-3"},
                                                                 {"site-1", "site-0", "site-2"},
                                                                 {"site-0", "site-1", "site-2", "site-3", "site-4"},
                                                                 {}}) {
    StudyLab lab(4);
    lab.plan("gram", Kind::GRAM);
    lab.secure(1, 1);  // k = 2: three are needed
    ASSERT_TRUE(lab.begin().ok());
    lab.among = sites;
    EXPECT_FALSE(lab.send(0, lab.ask("gram")).ok()) << fmt::format("{}", sites.size());
  }
}

TEST(HostileShares, WhoWasLeftOutDoesNotComeBack) {
  StudyLab lab(4);
  lab.plan("gram", Kind::GRAM);
  lab.plan("apply", Kind::APPLY);
  lab.secure(1, 1);
  ASSERT_TRUE(lab.begin().ok());
  lab.among = {"site-0", "site-1", "site-2"};
  const auto first = lab.ask("gram");
  ASSERT_TRUE(lab.send(0, first).ok());
  lab.sent(first);
  lab.among = {"site-0", "site-1", "site-2", "site-3"};
  EXPECT_FALSE(lab.send(0, lab.ask("apply")).ok());
}

TEST(HostileSpares, HaveNoiseOfTheirOwnAndAreCounted) {
  StudyLab lab(3);
  lab.plan("gram", Kind::GRAM);
  lab.plan("apply", Kind::APPLY);
  lab.secure(1, 1, 1);
  ASSERT_TRUE(lab.begin().ok());
  EXPECT_EQ(lab.work(0)->plan.events.back().label, kSpareRounds) << "charged";
  const auto gram = lab.ask("gram");
  const auto first = lab.expected(0, gram, kMu, lab.rows(0));
  ASSERT_TRUE(lab.send(0, gram).ok());
  lab.sent(gram);
  lab.among = {"site-0", "site-1"};
  auto again = lab.ask("gram");
  again.set_repeats(gram.number());
  const auto second = lab.expected(0, again, kMu, lab.rows(0));
  ASSERT_TRUE(lab.send(0, again).ok());
  lab.sent(again);
  for (std::size_t i = 0; i < first.noise.size(); ++i) EXPECT_NE(first.noise[i], second.noise[i]);
  auto third = lab.ask("gram");
  third.set_repeats(again.number());
  const auto refused = lab.send(0, third);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("a spare round that is not in the plan"));
}

TEST(HostileSpares, RepeatWhatWasAskedBeforeAndNothingElse) {
  using Change = std::function<void(wire::v2::Ask&)>;
  for (const Change& change :
       std::vector<Change>{[](auto& ask) { StudyLab::fill(ask, Kind::CLASS_SUMS); },
                           [](auto& ask) { ask.set_label("apply"); }, [](auto& ask) { ask.set_repeats(2); },
                           [](auto& ask) { ask.set_repeats(UINT32_MAX); }, [](auto& ask) { ask.set_narrow(true); }}) {
    StudyLab lab(3);
    lab.plan("gram", Kind::GRAM);
    lab.plan("apply", Kind::APPLY);
    lab.secure(1, 1, 3);
    ASSERT_TRUE(lab.begin().ok());
    const auto gram = lab.ask("gram");
    ASSERT_TRUE(lab.send(0, gram).ok());
    lab.sent(gram);
    auto again = lab.ask("gram");
    again.set_repeats(gram.number());
    change(again);
    EXPECT_FALSE(lab.send(0, again).ok());
  }
}

}  // namespace
}  // namespace eigenveil::federation
