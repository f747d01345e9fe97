// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "eigenveil/federation/script.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "tests/support/mutate.hpp"
#include "tests/support/proposals.hpp"

namespace eigenveil::federation {
namespace {

using test::kInfinity;
using test::kNow;
using test::message;
using test::ProposalCheck;
using testing::HasSubstr;
using testing::Not;
using wire::v2::Kind;
using wire::v2::Proposal;

constexpr std::uint32_t kExtremes[] = {0, 1, 1U << 31, 0xffffffffU};

TEST_F(ProposalCheck, WhatFitsTheSitesFileIsAcceptedAndReadByTheSitesFile) {
  const auto accepted = check_proposal(proposal(), own_, kNow);
  ASSERT_EQ(message(accepted), "ok");
  const Delta delta = *Delta::of(1e-6);
  EXPECT_NEAR(accepted->epsilon, gaussian_epsilon(0.2, delta), 1e-6);
  EXPECT_NEAR(accepted->epsilon_alone, gaussian_epsilon(0.2 * std::sqrt(3.0), delta), 1e-6);
  EXPECT_EQ(accepted->rows.missing, MissingPolicy::kZeroRow);
  EXPECT_EQ(accepted->rows.data, own_.data);
  ASSERT_TRUE(accepted->rows.bounds);
  EXPECT_EQ(accepted->rows.bounds->names(), (std::vector<std::string>{"age", "sex"}));
  Proposal local = proposal();
  make_local(local);
  const auto alone = check_proposal(local, own_, kNow);
  ASSERT_EQ(message(alone), "ok");
  EXPECT_EQ(alone->epsilon, alone->epsilon_alone);
}

// Whatever field of the rows is changed, the proposal is refused: none of them reaches a row unseen.
TEST_F(ProposalCheck, EveryFieldOfTheRowsMustBeTheSitesOwn) {
  const auto refused = [&](const std::function<void(wire::v2::Rows&)>& change, const std::string& words) {
    Proposal p = proposal();
    change(*p.mutable_rows());
    EXPECT_THAT(checked(p), HasSubstr(words));
  };
  refused([](auto& r) { r.mutable_columns(0)->set_upper(111); }, "bounds or values of column 'age' differ");
  refused([](auto& r) { r.mutable_columns(0)->set_lower(-0.0); }, "column 'age' differ");
  refused([](auto& r) { r.mutable_columns(0)->set_bounded(false); }, "column 'age' differ");
  refused([](auto& r) { r.mutable_columns(1)->add_values("x"); }, "column 'sex' differ");
  refused([](auto& r) { r.mutable_columns(1)->clear_other(); }, "column 'sex' differ");
  refused([](auto& r) { r.mutable_columns(0)->set_name("hiv\n"); }, "uses the column 'hiv\\x0a', which this site's");
  refused([](auto& r) { *r.add_columns() = r.columns(0); }, "column 'age' twice");
  refused([](auto& r) { r.mutable_columns()->RemoveLast(); }, "leaves out the column 'sex'");
  refused([](auto& r) { r.clear_columns(); }, "names no columns");
  refused([](auto& r) { r.set_zero_missing(false); }, "rule for missing values");
  refused([](auto& r) { r.set_radius(9); }, "another lattice");
  refused([](auto& r) { r.set_bits(4); }, "another lattice");
  refused([](auto& r) { r.set_bits(0xffffffffU); }, "another lattice");
  refused([](auto& r) { r.set_radius(std::nan("")); }, "another lattice");
  refused([](auto& r) { r.set_row_bound(11); }, "another lattice");
  refused([](auto& r) { r.set_row_bound(std::nan("")); }, "row bound");
  refused([](auto& r) { r.set_row_bound(-1); }, "row bound");
  refused([](auto& r) { r.set_center(static_cast<wire::v2::Rows::Center>(7)); }, "centring");
}

TEST_F(ProposalCheck, AClassColumnOutsideTheSitesFileIsRefused) {
  Proposal p = proposal();
  sort_by_label(p);
  add(p, Kind::CLASS_COUNTS, "class counts", 0.1).set_classes(2);
  EXPECT_EQ(checked(p), "ok");
  const auto refused = [&](const std::function<void(wire::v2::ClassColumn&)>& change, const std::string& words) {
    Proposal other = p;
    change(*other.mutable_rows()->mutable_class_column());
    EXPECT_THAT(checked(other), HasSubstr(words));
  };
  refused([](auto& c) { c.set_column("hiv"); }, "sorts rows by the column 'hiv', which is no class column");
  refused([](auto& c) { c.set_column("sex"); }, "no class column of this site");
  refused([](auto& c) { c.set_column(""); }, "no class column of this site");
  refused([](auto& c) { c.set_classes(1, "x"); }, "classes or cuts of column 'label' are not this site's");
  refused([](auto& c) { c.add_classes("C"); }, "are not this site's");
  refused([](auto& c) { c.set_drop_unlisted(false); }, "`unlisted` drop");
  refused([](auto& c) { c.add_cuts(1); }, "are not this site's");
}

// The policy asks what is asked, not what it is called.
TEST_F(ProposalCheck, QuestionsAreAllowedByTheirKindWhateverTheirLabel) {
  const SiteConfig own = config({.policy = "queries = [\"gram\"]\n"});
  EXPECT_EQ(checked(proposal(), own), "ok");
  for (const Kind kind : {Kind::CLASS_COUNTS, Kind::APPLY, Kind::NORM_COUNTS, Kind::SEARCH, Kind::RECENTER, Kind::MAP,
                          Kind::SOFTMAX_GRADIENT, Kind::KIND_UNKNOWN, static_cast<Kind>(99)}) {
    Proposal p = proposal();
    p.set_estimator("covariance");
    p.mutable_plan(0)->set_kind(kind);
    EXPECT_THAT(checked(p, own), HasSubstr("does not allow the question")) << static_cast<int>(kind);
  }
  Proposal named = proposal();
  named.set_estimator("magic");
  named.mutable_plan(0)->set_label("anything");
  EXPECT_EQ(checked(named, own), "ok");
}

TEST_F(ProposalCheck, ShapesAreThoseThatTheQuestionCanHave) {
  const auto refused = [&](const std::function<void(wire::v2::PlannedAsk&)>& change) {
    Proposal p = proposal();
    change(*p.mutable_plan(0));
    EXPECT_THAT(checked(p), Not("ok"));
  };
  refused([](auto& a) { a.set_rows(4); });
  refused([](auto& a) { a.set_rows(0); });
  refused([](auto& a) { a.set_columns(1); });
  refused([](auto& a) { a.set_grid(1); });
  refused([](auto& a) { a.set_classes(1); });
  Proposal p = proposal();
  auto& counts = add(p, Kind::CLASS_COUNTS, "counts", 0.1);
  EXPECT_THAT(checked(p), HasSubstr("cannot have")) << "no classes";
  counts.set_classes(1);
  EXPECT_EQ(checked(p), "ok") << "all rows are one class";
  counts.set_classes(2);
  EXPECT_THAT(checked(p), HasSubstr("cannot have")) << "there is no class column";
}

TEST_F(ProposalCheck, LimitsHoldAtTheirEdge) {
  const auto with = [&](const std::function<void(Proposal&)>& change) {
    Proposal p = proposal();
    add(p, Kind::NORM_COUNTS, "row bound", 0.01);
    change(p);
    return checked(p);
  };
  const auto edge = [&](const std::function<void(Proposal&, std::uint32_t)>& set, std::uint32_t most) {
    EXPECT_EQ(with([&](Proposal& p) { set(p, most); }), "ok");
    for (const std::uint32_t beyond : {most + 1, 1U << 31, 0xffffffffU})
      EXPECT_THAT(with([&](Proposal& p) { set(p, beyond); }), HasSubstr("limit")) << beyond;
  };
  own_.policy.least_noise = 1e-9;
  own_.policy.most_epsilon = own_.policy.most_epsilon_alone = 1e6;
  edge([](Proposal& p, std::uint32_t n) { p.mutable_plan(1)->set_grid(n); }, 512);
  edge([](Proposal& p, std::uint32_t n) { p.mutable_plan(1)->set_columns(n); }, 10'000);
  edge(
      [](Proposal& p, std::uint32_t n) {
        p.mutable_plan(1)->set_count(n);
        p.set_epsilon(100);
      },
      9'999);
  edge(
      [](Proposal& p, std::uint32_t n) {
        p.set_spares(n);
        p.set_spare_mu(0.2);
        p.set_epsilon(1000);
      },
      9'998);
  edge([](Proposal& p, std::uint32_t n) { p.mutable_plan(1)->set_label(std::string(std::min(n, 60'000'000U), 'x')); },
       200);
  edge([](Proposal& p, std::uint32_t n) { p.set_purpose(std::string(std::min(n, 60'000'000U), 'x')); }, 500);
  edge([](Proposal& p, std::uint32_t n) { p.set_options(std::string(std::min(n, 60'000'000U), 'x')); }, 500);
  EXPECT_THAT(with([](Proposal& p) {
                for (int i = 0; i < 10'000; ++i) *p.add_plan() = p.plan(0);
              }),
              HasSubstr("planned asks"));
  const SiteConfig few = config({.limits = "sites = 4\n"});
  EXPECT_THAT(checked(proposal(), few), HasSubstr("5 sites, above this site's limit of 4"));
}

TEST_F(ProposalCheck, ExtremeNumbersOfSharesAndLossesNeitherPassNorWrap) {
  const std::uint32_t n = static_cast<std::uint32_t>(proposal().sites_size());
  for (const std::uint32_t k : {0U, 1U, 2U, 3U, 4U, 5U, 1U << 31, 0xfffffffdU, 0xfffffffeU, 0xffffffffU})
    for (const std::uint32_t lost : kExtremes)
      for (const std::uint32_t colluders : kExtremes) {
        Proposal p = proposal();
        p.set_shares(k);
        p.set_lost(lost);
        p.set_colluders(colluders);
        const bool fits = k >= 1 && k <= n && lost <= n && colluders <= n && k + lost + colluders <= n &&
                          k + lost + own_.colluders <= n;
        EXPECT_EQ(checked(p) == "ok", fits) << k << " " << lost << " " << colluders << ": " << checked(p);
      }
  for (const std::uint32_t m : {0U, 6U, 1U << 31, 0xffffffffU}) {
    Proposal p = proposal();
    p.set_sites_per_person(m);
    EXPECT_THAT(checked(p), HasSubstr("a person has rows")) << m;
  }
}

TEST_F(ProposalCheck, LocalAggregationHasTheWholeNoiseAndNoSpares) {
  Proposal p = proposal();
  make_local(p);
  EXPECT_EQ(checked(p), "ok");
  for (const auto& change : {std::function<void(Proposal&)>([](Proposal& q) { q.set_shares(2); }),
                             {[](Proposal& q) { q.set_shares(0); }},
                             {[](Proposal& q) { q.set_lost(1); }},
                             {[](Proposal& q) {
                               q.set_spares(1);
                               q.set_spare_mu(1);
                             }}}) {
    Proposal other = p;
    change(other);
    EXPECT_THAT(checked(other), HasSubstr("one share"));
  }
  EXPECT_THAT(checked(p, config({.policy = "aggregation = \"secure\"\n"})), HasSubstr("does not allow local"));
  EXPECT_THAT(checked(proposal(), config({.policy = "aggregation = \"local\"\n"})), HasSubstr("does not allow secure"));
  p.set_aggregation(static_cast<Proposal::Aggregation>(7));
  EXPECT_THAT(checked(p), HasSubstr("aggregation is not known"));
}

// Sites whose keys nobody here knows may all be one person: they carry no share of this site's noise.
TEST_F(ProposalCheck, OnlySitesWithKnownKeysCountForTheNoise) {
  Pins known = study_.sites;
  known.erase("e");
  known.erase("d");
  SiteConfig own = config({.peers = known});
  EXPECT_THAT(checked(proposal(), own), HasSubstr("3 of its sites have keys that this site knows"));
  Proposal p = proposal();
  p.set_shares(1);
  EXPECT_EQ(checked(p, own), "ok");
  p.set_shares(2);
  EXPECT_THAT(checked(p, own), HasSubstr("fewer than the 2"));
  own = config({.top = "colluders = 3\n"});
  p.set_shares(1);
  EXPECT_EQ(checked(p, own), "ok");
  p.set_shares(2);
  EXPECT_THAT(checked(p, own), HasSubstr("3 of them may collude"));
}

TEST_F(ProposalCheck, SitesAreNamedOnceWithTheirOwnKeysAndTheCoordinatorIsNone) {
  const auto with = [&](const std::function<void(Proposal&)>& change) {
    Proposal p = proposal();
    change(p);
    return checked(p);
  };
  EXPECT_THAT(with([&](Proposal& p) { p.mutable_sites(1)->set_key_hash(std::string(64, '0')); }),
              HasSubstr("'b' has another key than the one that this site knows"));
  EXPECT_THAT(with([&](Proposal& p) { p.mutable_sites(0)->set_key_hash(std::string(64, '0')); }), Not("ok"));
  EXPECT_THAT(with([&](Proposal& p) {
                auto* self = p.add_sites();
                self->set_name("coordinator");
                self->set_key_hash(study_.coordinator.key_hash);
              }),
              HasSubstr("not in ascending order"));
  EXPECT_THAT(with([&](Proposal& p) {
                auto* self = p.add_sites();
                self->set_name("zoe");
                self->set_key_hash(study_.coordinator.key_hash);
              }),
              HasSubstr("coordinator is among its sites"));
  EXPECT_THAT(with([&](Proposal& p) {
                auto* self = p.add_sites();
                self->set_name("zoe");
                self->set_key_hash(study_.sites.at("b"));
              }),
              HasSubstr("the key of another one"));
  EXPECT_THAT(with([&](Proposal& p) { *p.add_sites() = p.sites(4); }), HasSubstr("twice"));
  EXPECT_THAT(with([&](Proposal& p) { p.mutable_sites(4)->set_name("z\x1b[2J"); }), HasSubstr("is no name"));
  EXPECT_THAT(with([&](Proposal& p) { p.clear_sites(); }), HasSubstr("does not have this one"));
  EXPECT_THAT(with([&](Proposal& p) { p.mutable_sites()->DeleteSubrange(0, 1); }), HasSubstr("does not have this one"));
}

TEST_F(ProposalCheck, EpsilonIsThatOfTheSitesOwnAccountant) {
  Proposal p = proposal();
  p.mutable_plan(0)->set_mu(0.5);
  EXPECT_THAT(checked(p), HasSubstr("it claims epsilon 1, but its plan costs"));
  p.set_epsilon(1000);
  EXPECT_THAT(checked(p), HasSubstr("above this site's limit of 1"));
  for (const double epsilon : {std::nan(""), kInfinity, -kInfinity, -1.0, 0.0}) {
    p = proposal();
    p.set_epsilon(epsilon);
    EXPECT_THAT(checked(p), Not("ok")) << epsilon;
  }
  for (const double delta : {std::nan(""), kInfinity, -1.0, 0.0, 1.0, 1e-3, 0.99}) {
    p = proposal();
    p.set_delta(delta);
    EXPECT_THAT(checked(p), Not("ok")) << delta;
  }
  for (const double mu : {std::nan(""), kInfinity, -kInfinity, -1.0, 0.0, -0.0, 1e308}) {
    p = proposal();
    p.mutable_plan(0)->set_mu(mu);
    EXPECT_THAT(checked(p), Not("ok")) << mu;
  }
  p = proposal();
  p.set_accounting("generous");
  EXPECT_THAT(checked(p), HasSubstr("malformed"));
  p = proposal();
  p.set_adjacency("none");
  EXPECT_THAT(checked(p), Not("ok"));
}

// Nothing but the proposal and the site's file is looked at: the data file of these tests does not exist.
TEST_F(ProposalCheck, MostEpsilonAloneRefusesBeforeARowIsRead) {
  own_.policy.most_epsilon_alone = gaussian_epsilon(0.2 * std::sqrt(3.0), *Delta::of(1e-6)) + 1e-6;
  EXPECT_EQ(checked(proposal()), "ok");
  own_.policy.most_epsilon_alone -= 1e-3;
  EXPECT_THAT(checked(proposal()), HasSubstr("if all other sites join against this one would be"));
  EXPECT_FALSE(std::filesystem::exists(own_.data));
}

// Whose rows they are and what becomes of those without an id is the site's to say; what they count is the study's.
TEST_F(ProposalCheck, PeopleAreProtectedByTheSitesOwnColumn) {
  Proposal p = proposal();
  p.mutable_people()->set_least_rows(1);
  EXPECT_THAT(checked(p), HasSubstr("goes with protecting people"));
  p.set_unit("person");
  EXPECT_THAT(checked(p), HasSubstr("add person ="));
  SiteConfig own = own_;
  own.person = "patient";
  EXPECT_EQ(checked(p, own), "ok");
  p.mutable_people()->set_least_rows(20);
  p.mutable_people()->set_most_rows(50);
  const auto accepted = check_proposal(p, own, kNow);
  ASSERT_EQ(message(accepted), "ok");
  EXPECT_EQ(accepted->plan.person, "patient");
  ASSERT_TRUE(accepted->rows.person);
  EXPECT_EQ(accepted->rows.person->column, "patient");
  EXPECT_EQ(accepted->rows.person->least_rows, 20U);
  EXPECT_EQ(accepted->rows.person->most_rows, std::size_t{50});
  EXPECT_FALSE(accepted->rows.person->missing_is_own);
  for (const std::uint32_t least : {0U, 0xffffffffU}) {
    Proposal other = p;
    other.mutable_people()->set_least_rows(least);
    EXPECT_THAT(checked(other, own), HasSubstr("malformed")) << least;
  }
  p.mutable_people()->set_missing_is_own(true);
  EXPECT_THAT(checked(p, own), HasSubstr("`missing_person` error"));
  own.missing_person_is_own = true;
  EXPECT_EQ(checked(p, own), "ok");
  p.clear_people();
  EXPECT_THAT(checked(p, own), HasSubstr("goes with protecting people"));
}

TEST_F(ProposalCheck, NoDeltaIsAcceptedThatCannotBePromisedToPeople) {
  Proposal p = proposal();
  p.set_unit("person");
  p.mutable_people()->set_least_rows(1);
  EXPECT_THAT(checked(p), HasSubstr("add person ="));
  own_.person = "patient";
  EXPECT_EQ(checked(p), "ok");
  p.set_delta(1e-19);
  EXPECT_THAT(checked(p), HasSubstr("no delta below 1e-18"));
}

TEST_F(ProposalCheck, APersonAtSeveralSitesCostsMore) {
  Proposal p = proposal();
  p.set_sites_per_person(2);
  auto accepted = check_proposal(p, own_, kNow);
  EXPECT_THAT(message(accepted), HasSubstr("its epsilon would be"));
  own_.policy.most_epsilon = 3;
  accepted = check_proposal(p, own_, kNow);
  ASSERT_EQ(message(accepted), "ok");
  EXPECT_NEAR(accepted->epsilon, gaussian_epsilon(0.4, *Delta::of(1e-6)), 1e-6);
  EXPECT_EQ(*epsilon_of(accepted->plan.events, *Delta::of(1e-6), Accounting::kTight), accepted->epsilon)
      << "what is shown is charged";
  make_local(p);
  accepted = check_proposal(p, own_, kNow);
  ASSERT_EQ(message(accepted), "ok");
  EXPECT_NEAR(accepted->epsilon, gaussian_epsilon(0.2 * std::sqrt(2.0), *Delta::of(1e-6)), 1e-6);
}

TEST_F(ProposalCheck, LeastNoiseCountsEveryAnswerToAQuestion) {
  own_.policy.most_epsilon = own_.policy.most_epsilon_alone = 1000;
  own_.policy.least_noise = 5;
  Proposal p = proposal();
  p.set_epsilon(500);
  EXPECT_EQ(checked(p), "ok") << "1 / 0.2";
  p.mutable_plan(0)->set_count(2);
  EXPECT_THAT(checked(p), HasSubstr("below this site's floor of 5"));
  p.mutable_plan(0)->set_count(1);
  p.set_spares(1);
  p.set_spare_mu(0.2);
  EXPECT_THAT(checked(p), HasSubstr("below this site's floor of 5"));
  p.mutable_plan(0)->set_label(kSpareRounds);
  EXPECT_THAT(checked(p), HasSubstr("below this site's floor of 5")) << "whatever it is called";
  p.set_spares(0);
  EXPECT_EQ(checked(p), "ok");
  add(p, Kind::GRAM, "another", 0.2);
  EXPECT_THAT(checked(p), HasSubstr("below this site's floor of 5")) << "the same question under two names";
}

TEST_F(ProposalCheck, LeastNoiseIsThatAgainstOnePersonAtAllTheirSites) {
  own_.policy.most_epsilon = own_.policy.most_epsilon_alone = 1000;
  Proposal p = proposal();
  p.set_epsilon(500);
  p.set_sites_per_person(2);
  own_.policy.least_noise = 1 / 0.2 / 2 * (1 - 1e-9);
  EXPECT_EQ(checked(p), "ok") << "a masked total moves twice";
  own_.policy.least_noise *= 1 + 1e-6;
  EXPECT_THAT(checked(p), HasSubstr("what one person can change"));
  make_local(p);
  own_.policy.least_noise = 1 / 0.2 / std::sqrt(2.0) * (1 - 1e-9);
  EXPECT_EQ(checked(p), "ok") << "two answers, each with noise of its own";
  own_.policy.least_noise *= 1 + 1e-6;
  EXPECT_THAT(checked(p), HasSubstr("what one person can change"));
}

TEST_F(ProposalCheck, TimeIsUpOrTooLongOrBeyondTheCertificate) {
  const auto at = [&](std::int64_t not_after) {
    Proposal p = proposal();
    p.set_not_after(not_after);
    return checked(p);
  };
  EXPECT_THAT(at(kNow), HasSubstr("has expired"));
  EXPECT_EQ(at(kNow + 1), "ok");
  EXPECT_EQ(at(kNow + 30 * 86400), "ok");
  EXPECT_THAT(at(kNow + 30 * 86400 + 1), HasSubstr("more than 30 days"));
  EXPECT_THAT(at(std::numeric_limits<std::int64_t>::max()), HasSubstr("more than 30 days"));
  EXPECT_THAT(at(std::numeric_limits<std::int64_t>::min()), HasSubstr("has expired"));
  EXPECT_THAT(at(0), HasSubstr("has expired"));
  own_.identity.party.not_after = kNow + 10;
  EXPECT_EQ(at(kNow + 10), "ok");
  EXPECT_THAT(at(kNow + 11), HasSubstr("longer than this site's certificate"));
}

TEST_F(ProposalCheck, AnotherVersionOrStudyNumberIsRefused) {
  for (const std::uint32_t version : {0U, 1U, 3U, 0xffffffffU}) {
    Proposal p = proposal();
    p.set_version(version);
    EXPECT_THAT(checked(p), HasSubstr("version"));
  }
  Proposal p = proposal();
  p.set_study("short");
  EXPECT_THAT(checked(p), HasSubstr("no proper number"));
  EXPECT_THAT(checked(Proposal()), Not("ok"));
}

// What must hold for a proposal that is accepted, said a second time and not by the code that checks it.
void expect_harmless(const Proposal& p, const Proposal& fitting, const SiteConfig& own, const Accepted& accepted) {
  EXPECT_EQ(p.version(), kWireVersion);
  EXPECT_GT(p.not_after(), kNow);
  EXPECT_LE(p.not_after(), kNow + 30 * 86400);
  std::set<std::string> pinned;
  for (const auto& site : p.sites()) {
    EXPECT_NE(site.key_hash(), own.coordinator_key);
    EXPECT_NE(site.name(), own.coordinator_name);
    const auto pin = own.peers.find(site.name());
    if (pin == own.peers.end()) continue;
    EXPECT_EQ(site.key_hash(), pin->second);
    EXPECT_TRUE(pinned.insert(site.name()).second);
  }
  EXPECT_TRUE(pinned.contains("a"));
  EXPECT_LE(p.sites_size(), 64);
  const bool secure = p.aggregation() == Proposal::SECURE;
  EXPECT_GE(p.shares(), 1u);
  if (secure) {
    EXPECT_GE(double(pinned.size()), double(own.colluders) + p.lost() + p.shares());
  } else {
    EXPECT_EQ(p.shares() + p.lost() + p.spares(), 1u);
  }
  // Rows: only names, centring and row bound are the proposal's; of its columns those that this site has.
  for (const auto& column : p.rows().columns()) {
    const auto same = std::find_if(fitting.rows().columns().begin(), fitting.rows().columns().end(),
                                   [&](const auto& c) { return c.SerializeAsString() == column.SerializeAsString(); });
    EXPECT_TRUE(same != fitting.rows().columns().end()) << column.ShortDebugString();
  }
  EXPECT_TRUE(p.rows().zero_missing());
  EXPECT_EQ(p.rows().bits(), 20u);
  if (p.rows().has_class_column()) {
    EXPECT_EQ(p.rows().class_column().SerializeAsString(), fitting.rows().class_column().SerializeAsString());
  }
  // Every ask is of an allowed kind with noise, within limits, and paid for.
  double total = 0;
  double asks = p.spares();
  for (const auto& ask : p.plan()) {
    EXPECT_TRUE(own.policy.queries.contains(ask.kind()));
    EXPECT_LE(ask.grid(), 512u);
    EXPECT_LE(ask.columns(), 10'000u);
    EXPECT_LE(ask.label().size(), 200u);
    asks += ask.count();
    if (moves_rows(ask.kind())) continue;
    EXPECT_TRUE(std::isfinite(ask.mu()) && ask.mu() > 0);
    EXPECT_TRUE(!(p.spares() > 0) || p.spare_mu() >= ask.mu());
    total += ask.mu() * ask.mu() * ask.count();
  }
  EXPECT_LE(asks, 10'000);
  total += p.spares() > 0 ? p.spare_mu() * p.spare_mu() * p.spares() : 0;
  ASSERT_GT(total, 0);
  ASSERT_TRUE(p.delta() > 0 && p.delta() <= 1e-5);
  const Delta delta = *Delta::of(p.delta());
  const double m = p.sites_per_person();
  ASSERT_GE(m, 1);
  const double slack = 1 - 1e-9;
  EXPECT_LE(gaussian_epsilon(std::sqrt(total) * (secure ? m : std::sqrt(m)), delta) * slack, own.policy.most_epsilon);
  EXPECT_LE(gaussian_epsilon(std::sqrt(total * p.shares()), delta) * slack, own.policy.most_epsilon_alone);
  EXPECT_GE(accepted.epsilon_alone, gaussian_epsilon(std::sqrt(total * p.shares()), delta) * slack);
  const std::string words = in_words(p, std::string(32, 'h'), accepted, own, "");
  EXPECT_TRUE(std::ranges::none_of(
      words, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == '\x7f'; }));
  EXPECT_THAT(words, Not(HasSubstr("\n  Costs      epsilon 0.001")));
}

// 2,000 proposals that a hostile coordinator might send, 100,000 by night: each is refused in words or is harmless.
TEST_F(ProposalCheck, WhateverIsProposedIsRefusedOrHarmless) {
  const bool night = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
  test::Mutator mutator(night ? std::random_device()() : 20261117);
  Proposal fitting = proposal();
  sort_by_label(fitting);
  add(fitting, Kind::CLASS_COUNTS, "class counts", 0.02).set_classes(2);
  add(fitting, Kind::NORM_COUNTS, "row bound", 0.02).set_grid(100);
  add(fitting, Kind::RECENTER, "recentre", 0);
  fitting.set_spares(1);
  fitting.set_spare_mu(0.2);
  fitting.set_epsilon(2);
  own_.policy.most_epsilon = 2;
  ASSERT_EQ(checked(fitting), "ok");
  int accepted_count = 0;
  for (int round = 0; round < (night ? 100'000 : 2'000); ++round) {
    Proposal p = fitting;
    if (mutator.pick(3) == 0) {
      make_local(p);
      p.set_spares(0);
      p.set_spare_mu(0);
    }
    for (int change = mutator.pick(4); change >= 0; --change) mutator.mutate(p);
    const auto accepted = check_proposal(p, own_, kNow);
    if (!accepted) {
      EXPECT_FALSE(accepted.error().message.empty());
      EXPECT_EQ(accepted.error().message.find_first_of("\n\x1b\x9b"), std::string::npos);
      continue;
    }
    ++accepted_count;
    expect_harmless(p, fitting, own_, *accepted);
    if (HasFailure()) FAIL() << "round " << round << ":\n" << p.DebugString();
  }
  EXPECT_GT(accepted_count, 50) << "too many are refused to say much about those that are not";
}

}  // namespace
}  // namespace eigenveil::federation
