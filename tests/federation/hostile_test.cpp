// Coordinators that do not keep to the protocol: what they get, and what it costs. For every answer that a site gives,
// the noise of its plan is in it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "../src/federation/credentials.hpp"
#include "tests/support/child.hpp"
#include "tests/support/study_lab.hpp"
#include "version1.grpc.pb.h"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::Certificates;
using test::integers;
using test::StudyLab;
using ::testing::HasSubstr;
using wire::v2::Kind;

constexpr double kMu = StudyLab::kMu;

const std::vector<double>& extremes() {
  static const std::vector<double> all = {0.0,
                                          -0.0,
                                          -1.0,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN(),
                                          -std::numeric_limits<double>::quiet_NaN(),
                                          std::numeric_limits<double>::denorm_min(),
                                          std::numeric_limits<double>::min(),
                                          std::numeric_limits<double>::max(),
                                          -std::numeric_limits<double>::max(),
                                          1e-300,
                                          1e300,
                                          0x1p61};
  return all;
}

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

// ---- the plan is the only source of noise

TEST(HostileNoise, AnAskHasNoFieldForIt) {
  const auto* ask = wire::v2::Ask::descriptor();
  for (int i = 0; i < ask->field_count(); ++i) {
    EXPECT_NE(ask->field(i)->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) << ask->field(i)->name();
    EXPECT_NE(ask->field(i)->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_FLOAT) << ask->field(i)->name();
  }
}

// mu = -infinity as the first version had it, in its field and in every other: not one byte is answered.
TEST(HostileNoise, AnAskThatBringsItsOwnIsRefused) {
  for (const int field : {9, 10, 14, 20, 100}) {
    StudyLab lab;
    lab.plan("gram", Kind::GRAM);
    ASSERT_TRUE(lab.begin().ok());
    auto ask = lab.ask("gram");
    wire::v2::Ask::GetReflection()->MutableUnknownFields(&ask)->AddFixed64(field, 0xfff0000000000000);
    EXPECT_FALSE(lab.studies[0]->answer(ask.SerializeAsString()).ok());
    EXPECT_FALSE(lab.send(0, lab.ask("gram")).ok()) << "and the study is over";
  }
}

TEST(HostileNoise, APlanWithoutProperNoiseIsRefusedBeforeItIsCharged) {
  for (const double mu : extremes()) {
    SCOPED_TRACE(mu);
    StudyLab lab;
    lab.plan("gram", Kind::GRAM);
    lab.proposal.mutable_plan(0)->set_mu(mu);
    EXPECT_FALSE(lab.open(0).ok());
    EXPECT_EQ(lab.charges(0), 0U);
  }
}

TEST(HostileNoise, SpareRoundsWithoutProperNoiseAreRefusedBeforeTheyAreCharged) {
  auto all = extremes();
  all.push_back(kMu / 2);  // cheaper than what they repeat
  for (const double mu : all) {
    SCOPED_TRACE(mu);
    StudyLab lab(3);
    lab.plan("gram", Kind::GRAM);
    lab.secure(1, 1, 2);
    lab.proposal.set_spare_mu(mu);
    EXPECT_FALSE(lab.open(0).ok());
    EXPECT_EQ(lab.charges(0), 0U);
  }
}

// ---- what was computed from other rows

// Search, then rows on a lattice whose steps are a thousand times smaller, then the product of the search.
TEST(HostileCells, DieWithTheLatticeTheyCameFrom) {
  StudyLab lab;
  lab.plan("search", Kind::SEARCH);
  lab.plan("recentre", Kind::RECENTER);
  lab.plan("product", Kind::PRODUCT);
  ASSERT_TRUE(lab.begin().ok());
  std::vector<wire::v2::Ask> asked = {lab.ask("search")};
  ASSERT_TRUE(lab.send(0, asked[0]).ok());
  lab.sent(asked[0]);
  asked.push_back(lab.ask("recentre"));
  asked[1].mutable_recenter()->set_radius(0.004);
  ASSERT_TRUE(lab.send(0, asked[1]).ok());
  lab.sent(asked[1]);
  const auto product = lab.ask("product");
  const auto expected = lab.expected(0, product, kMu, lab.rows(0, asked));
  const auto answer = lab.send(0, product);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const auto values = integers(*answer);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], (expected.sum.values[i] << expected.scale.shift) + expected.noise[i]);
}

TEST(HostileCells, RowsAreMovedOnlyWhereThePlanSaysSo) {
  StudyLab lab;
  lab.plan("search", Kind::SEARCH);
  lab.plan("product", Kind::PRODUCT);
  ASSERT_TRUE(lab.begin().ok());
  const auto search = lab.ask("search");
  ASSERT_TRUE(lab.send(0, search).ok());
  lab.sent(search);
  auto recentre = lab.ask("recentre");
  StudyLab::fill(recentre, Kind::RECENTER);
  const auto refused = lab.send(0, recentre);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("beyond the plan"));
}

// ---- masks and shares

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

// ---- spare rounds

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

// ---- sizes

TEST(HostileSizes, WhatIsLargerThanTheSiteAllowsIsRefusedBeforeItIsComputed) {
  using Change = std::function<void(wire::v2::Ask&)>;
  for (const Change& change : std::vector<Change>{[](auto& ask) {
                                                    for (int i = 0; i < 600; ++i)
                                                      ask.mutable_exceedance()->add_grid(10 + i);
                                                  },
                                                  [](auto& ask) { ask.set_label(std::string(300, 'x')); },
                                                  [](auto& ask) { ask.set_label(std::string(60'000'000, 'x')); }}) {
    StudyLab lab;
    lab.plan("norms", Kind::NORM_COUNTS);
    ASSERT_TRUE(lab.begin().ok());
    auto ask = lab.ask("norms");
    change(ask);
    EXPECT_FALSE(lab.send(0, ask).ok());
    EXPECT_EQ(std::filesystem::file_size(lab.state(0) + "/answers.bin"), 0U);
  }
}

// ---- anything at all

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
      EXPECT_GT(std::abs(z), 1e-9) << "no noise";  // false alarms: 1e-9 each
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

// ---- over the network

/// A coordinator that sends what it is given, one message after each message of the site.
class Script final : public wire::v2::Coordinator::Service {
 public:
  using Next = std::function<std::optional<wire::v2::ToSite>(const wire::v2::FromSite&)>;
  explicit Script(const StudyLab& lab, Next next) : next_(std::move(next)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0", credentials_of_coordinator(Certificates::shared().identity("coordinator"), lab.pins), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Script() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>* stream) override {
    wire::v2::FromSite message;
    while (stream->Read(&message)) {
      heard.push_back(message);
      if (const auto next = next_(message)) stream->Write(*next);
    }
    return grpc::Status::OK;
  }
  int port = 0;
  std::vector<wire::v2::FromSite> heard;

 private:
  Next next_;
  std::unique_ptr<grpc::Server> server_;
};

class RealSite : public ::testing::Test {
 protected:
  RealSite() : lab(1) { lab.plan("gram", Kind::GRAM); }

  /// Runs the program as a site and gives its exit code and what it printed.
  std::pair<int, std::string> serve(int port) {
    const SiteConfig& config = lab.configs[0];
    for (const auto& [name, text] : {std::pair{"ca", config.identity.authority},
                                     {"crt", config.identity.certificate},
                                     {"key", config.identity.key}})
      std::ofstream(folder_.file(std::string("tls-") + name)) << text;
    std::string schema;
    for (const char* column : {"a", "b"})
      schema += fmt::format("[[column]]\nname = \"{}\"\nkind = \"numeric\"\nlower = -4\nupper = 4\n", column);
    schema += "[[column]]\nname = \"label\"\nkind = \"categorical\"\nvalues = [\"A\", \"B\", \"C\"]\n";
    std::ofstream(folder_.file("schema.toml")) << schema;
    std::ofstream(folder_.file("site.toml")) << fmt::format(
        "{}coordinator = \"127.0.0.1:{}\"\ncoordinator_name = \"coordinator\"\ncoordinator_key = \"{}\"\n"
        "data = \"{}\"\nschema = \"schema.toml\"\nmissing = \"error\"\nunlisted = \"error\"\n"
        "dataset = \"rows\"\nledger = \"{}\"\nstate = \"{}\"\n"
        "[tls]\nauthority = \"tls-ca\"\ncertificate = \"tls-crt\"\nkey = \"tls-key\"\n"
        "[peers]\n\"site-0\" = \"{}\"\n[classes]\nlabel = [\"A\", \"B\", \"C\"]\n"
        "[policy]\nmost_epsilon = 900\nmost_epsilon_alone = 900\nleast_noise = 0.001\n",
        more_, port, config.coordinator_key, config.data, config.ledger, config.state, lab.pins.at("site-0"));
    test::Child child({EIGENVEIL_PROGRAM, "site", "serve", "--config", folder_.file("site.toml"), "--approve", "policy",
                       "--once", "--give-up", "5"});
    std::string text = child.all_output();
    return {WEXITSTATUS(child.wait()), text};
  }
  /// Proposal, roster, and then the ask that `last` makes.
  Script::Next conversation(std::function<std::optional<wire::v2::ToSite>()> last) {
    return [this, last](const wire::v2::FromSite& from) -> std::optional<wire::v2::ToSite> {
      wire::v2::ToSite message;
      if (from.has_hello()) {
        *message.mutable_proposal() = lab.signed_by_coordinator(lab.proposal);
        return message;
      }
      if (from.has_accept()) {
        wire::v2::Roster roster;
        roster.set_study(lab.proposal.study());
        *roster.add_accepts() = from.accept();
        const std::string bytes = canonical_bytes(roster);
        lab.chain.emplace(lab.proposal_hash(), hash("roster", {lab.proposal_hash(), bytes}));
        lab.among = {"site-0"};
        message.set_roster(bytes);
        return message;
      }
      if (from.has_part()) message.mutable_finish()->set_study(lab.proposal.study());
      if (from.has_part()) return message;
      return from.has_standing() ? last() : std::nullopt;
    };
  }
  test::TempDir folder_;
  std::string more_;  // lines of the site's file
  StudyLab lab;
};

// How long reading took says something about the rows, whether the site takes part or not.
TEST_F(RealSite, AcceptsAndRefusesAtAMultipleOfTheQuantum) {
  using Clock = std::chrono::steady_clock;
  more_ = "quantum_ms = 1500\n";
  for (const char* line : {"1,1,A", "1,,A"}) {
    SCOPED_TRACE(line);
    lab.proposal.set_study(draw_study());
    std::ofstream(lab.data(0), std::ios::app) << line << "\n";
    std::optional<Clock::time_point> proposed;
    std::optional<Clock::time_point> answered;
    Script script(lab, [&](const wire::v2::FromSite& from) -> std::optional<wire::v2::ToSite> {
      wire::v2::ToSite message;
      if (from.has_hello()) {
        proposed = Clock::now();
        *message.mutable_proposal() = lab.signed_by_coordinator(lab.proposal);
        return message;
      }
      if (from.has_accept() || from.has_refusal()) answered = Clock::now();
      if (!from.has_standing()) return std::nullopt;
      message.mutable_finish()->set_study(lab.proposal.study());
      return message;
    });
    const auto [code, text] = serve(script.port);
    ASSERT_TRUE(proposed && answered) << text;
    EXPECT_GE(*answered - *proposed, std::chrono::milliseconds(1500)) << text;
  }
}

TEST_F(RealSite, RefusesAnAskBeyondThePlanAndSaysSo) {
  Script script(lab, conversation([&] {
                  wire::v2::ToSite message;
                  auto ask = lab.ask("gram");
                  StudyLab::fill(ask, Kind::CLASS_COUNTS);
                  message.set_ask(canonical_bytes(ask));
                  return std::optional(message);
                }));
  const auto [code, text] = serve(script.port);
  ASSERT_FALSE(script.heard.empty()) << text;
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("the coordinator asks beyond the plan"));
  ASSERT_TRUE(script.heard.back().has_refusal());
  EXPECT_EQ(lab.charges(0), 1U);
}

TEST_F(RealSite, AnswersOverTlsWithTheNoiseOfThePlan) {
  std::optional<test::Expected> expected;
  Script script(lab, conversation([&] {
                  wire::v2::ToSite message;
                  const auto ask = lab.ask("gram");
                  expected = lab.expected(0, ask, kMu, lab.rows(0));
                  message.set_ask(canonical_bytes(ask));
                  return std::optional(message);
                }));
  const auto [code, text] = serve(script.port);
  EXPECT_EQ(code, 0) << text;
  ASSERT_TRUE(expected.has_value()) << text;
  ASSERT_TRUE(script.heard.back().has_part());
  std::vector<Int128> values(3);
  add_integers(script.heard.back().part().values(), false, values.data());
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(values[i], (expected->sum.values[i] << expected->scale.shift) + expected->noise[i]);
  EXPECT_EQ(lab.work(0)->state, WorkState::kClosed);
}

// Random asks to the program itself: refused, or answered with the noise of the plan.
TEST_F(RealSite, WhateverIsAskedOverTlsIsRefusedOrHasTheNoiseOfThePlan) {
  const int rounds = std::getenv("EIGENVEIL_NIGHTLY") != nullptr ? 200 : 4;
  std::mt19937 random(5);
  for (int round = 0; round < rounds; ++round) {
    lab.proposal.set_study(draw_study());
    std::optional<test::Expected> expected;
    const std::size_t change = random() % 8;
    Script script(lab, conversation([&] {
                    wire::v2::ToSite message;
                    auto ask = lab.ask("gram");
                    if (change == 0) ask.set_number(static_cast<std::uint32_t>(random()));
                    if (change == 1) ask.set_prev(hash("x", {"y"}));
                    if (change == 2) StudyLab::fill(ask, static_cast<Kind>(1 + random() % 12));
                    if (change == 3) ask.add_among("site-1");
                    if (kind_of(ask) == Kind::GRAM) expected = lab.expected(0, ask, kMu, lab.rows(0));
                    message.set_ask(canonical_bytes(ask));
                    if (change == 4) message.mutable_ask()->append("\x49\0\0\0\0\0\0\xf0\xff", 9);  // mu = -infinity
                    return std::optional(message);
                  }));
    const auto [code, text] = serve(script.port);
    if (script.heard.back().has_refusal()) continue;
    ASSERT_TRUE(script.heard.back().has_part() && expected.has_value()) << text;
    std::vector<Int128> values(3);
    add_integers(script.heard.back().part().values(), false, values.data());
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(values[i], (expected->sum.values[i] << expected->scale.shift) + expected->noise[i]);
  }
}

TEST_F(RealSite, RefusesAProtocolOfAnotherVersion) {
  lab.proposal.set_version(7);
  Script script(lab, conversation([] { return std::nullopt; }));
  const auto [code, text] = serve(script.port);
  ASSERT_FALSE(script.heard.empty()) << text;
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("it speaks version 7 of the protocol, this end version 2"));
  EXPECT_EQ(lab.charges(0), 0U);
}

// A row that is no number, one with a class that is not listed, a file that is not there: the coordinator hears one
// sentence, the same as when the person says no, and the charge stays.
TEST_F(RealSite, WhateverIsWrongWithTheRowsTheCoordinatorHearsTheSame) {
  std::set<std::string> heard;
  for (const std::string line : {"secret,1,A", "1,1,Z", "1,,A", "1,1"}) {
    SCOPED_TRACE(line);
    lab.proposal.set_study(draw_study());
    lab.write_rows(0);
    std::ofstream(lab.data(0), std::ios::app) << line << "\n";
    Script script(lab, conversation([] { return std::nullopt; }));
    const auto [code, text] = serve(script.port);
    EXPECT_NE(code, 0) << text;
    ASSERT_TRUE(script.heard.back().has_refusal()) << text;
    heard.insert(script.heard.back().SerializeAsString());
    EXPECT_EQ(script.heard.back().refusal().reason(), kCannotTakePart);
    ASSERT_TRUE(lab.work(0).has_value());
    EXPECT_FALSE(lab.work(0)->refunded);
  }
  EXPECT_EQ(heard.size(), 1U);
}

}  // namespace
}  // namespace eigenveil::federation
