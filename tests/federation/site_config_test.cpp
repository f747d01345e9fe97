#include "eigenveil/federation/site_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/script.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "tests/support/parties.hpp"

namespace eigenveil::federation {
namespace {

using test::make_party;
using test::make_site;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;
using wire::v2::Kind;
using wire::v2::Proposal;

constexpr std::int64_t kNow = 1'800'000'000;  // the tests' own clock
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kExtremes[] = {0, 1, 1U << 31, 0xffffffffU};

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().message;
}

/// Five sites and a coordinator; this site is "a" and knows the keys of all of them.
struct Study {
  Study() {
    const Validity long_enough{.until = 3650LL * 86400};
    if (!make_authority(folder(), "study", long_enough)) throw std::runtime_error("no authority");
    coordinator = make_party(folder(), "coordinator", Role::kCoordinator, {}, long_enough);
    for (const char* name : {"a", "b", "c", "d", "e"}) sites[name] = make_site(folder(), name, long_enough).key_hash;
    dir.write_file("schema.toml",
                   "[[column]]\nname = \"age\"\nkind = \"numeric\"\nlower = 0\nupper = 110\n"
                   "[[column]]\nname = \"sex\"\nkind = \"categorical\"\nvalues = [\"F\", \"M\"]\nother = \"M\"\n"
                   "[[column]]\nname = \"label\"\nkind = \"categorical\"\nvalues = [\"A\", \"B\", \"C\"]\n"
                   "[[column]]\nname = \"dose\"\nkind = \"numeric\"\nlower = -8\nupper = 8\n");
  }
  std::string folder() const { return dir.file("ca"); }
  static Study& shared() {
    static Study one;
    return one;
  }

  TempDir dir;
  Party coordinator;
  Pins sites;
};

class SiteFile : public testing::Test {
 protected:
  /// The parts of a site.toml: replaced, added to or left out.
  struct Parts {
    std::string top;
    std::string without;
    std::string policy;
    std::string limits;
    std::string classes = "label = [\"A\", \"B\"]\ndose = { slices = 4 }\n";
    Pins peers = Study::shared().sites;
  };
  static Parts plain() { return {}; }

  std::string write(const Parts& parts) {
    std::string text;
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"coordinator", "127.0.0.1:7443"},
                                     {"coordinator_name", "coordinator"},
                                     {"coordinator_key", study_.coordinator.key_hash},
                                     {"data", "rows.csv"},
                                     {"schema", "schema.toml"},
                                     {"dataset", "rows"}})
      if (key != parts.without) text += fmt::format("{} = \"{}\"\n", key, value);
    text += parts.top;
    text += "[tls]\nauthority = \"ca/ca.crt\"\ncertificate = \"ca/a.crt\"\nkey = \"ca/a.key\"\n";
    if (!parts.classes.empty()) text += "[classes]\n" + parts.classes;
    text += "[policy]\n" + parts.policy + "[limits]\n" + parts.limits;
    if (parts.without != "peers") {
      text += "[peers]\n";
      for (const auto& [name, pin] : parts.peers) text += fmt::format("{} = \"{}\"\n", name, pin);
    }
    study_.dir.write_file("site.toml", text);
    return study_.dir.file("site.toml");
  }
  Result<SiteConfig> read(const Parts& parts) { return read_site_config(write(parts)); }
  SiteConfig config(const Parts& parts = plain()) {
    auto config = read(parts);
    if (!config) throw std::runtime_error(config.error().message);
    return *std::move(config);
  }

  Study& study_ = Study::shared();
};

TEST_F(SiteFile, HasSafeDefaultsForAllButWhatOnlyTheSiteKnows) {
  const SiteConfig own = config();
  EXPECT_EQ(own.identity.party.name, "a");
  EXPECT_EQ(own.colluders, 1u);
  EXPECT_EQ(own.missing, MissingPolicy::kZeroRow);
  EXPECT_TRUE(own.drop_unlisted);
  EXPECT_EQ(own.limits.grid, 512u);
  EXPECT_EQ(own.limits.label, 200u);
  EXPECT_EQ(own.limits.purpose, 500u);
  EXPECT_EQ(own.limits.asks, 10'000u);
  EXPECT_EQ(own.limits.sites, 64u);
  EXPECT_EQ(own.policy.most_epsilon, 1);
  EXPECT_EQ(own.policy.most_epsilon_alone, 5);
  EXPECT_EQ(own.policy.most_delta, 1e-5);
  EXPECT_FALSE(own.policy.queries.contains(Kind::SOFTMAX_GRADIENT));
  EXPECT_EQ(own.classes.at("dose").cuts, (std::vector<double>{-4, 0, 4}));
  for (const char* key : {"coordinator", "coordinator_name", "coordinator_key", "data", "schema", "dataset", "peers"})
    EXPECT_THAT(message(read({.without = key})), HasSubstr(fmt::format("'{}' is missing", key)));
}

TEST_F(SiteFile, UnknownKeysAreRefused) {
  EXPECT_THAT(message(read({.top = "colluder = 2\n"})), HasSubstr("'colluder' is not known"));
  EXPECT_THAT(message(read({.policy = "most_epsilom = 2\n"})), HasSubstr("'most_epsilom' is not known"));
  EXPECT_THAT(message(read({.limits = "gird = 2\n"})), HasSubstr("'gird' is not known"));
  EXPECT_THAT(message(read({.limits = "\"a\\u001b[2J\" = 2\n"})), HasSubstr("'a\\x1b[2J' is not known"));
}

TEST_F(SiteFile, WholeNumbersDoNotWrapAround) {
  for (const char* value : {"0", "-1", "4294967297", "9223372036854775807", "1e3", "\"3\"", "true", "nan"}) {
    EXPECT_THAT(message(read({.top = fmt::format("colluders = {}\n", value)})), HasSubstr("whole number")) << value;
    EXPECT_THAT(message(read({.limits = fmt::format("grid = {}\n", value)})), HasSubstr("whole number")) << value;
    EXPECT_THAT(message(read({.limits = fmt::format("asks = {}\n", value)})), HasSubstr("whole number")) << value;
  }
  EXPECT_THAT(message(read({.limits = "sites = 65\n"})), HasSubstr("from 1 to 64"));
  EXPECT_EQ(config({.limits = "sites = 64\nasks = 2147483647\n"}).limits.asks, 2147483647u);
}

TEST_F(SiteFile, LimitsOfPrivacyAreFiniteAndPositive) {
  for (const char* key : {"most_epsilon", "most_epsilon_alone", "most_delta", "least_noise"})
    for (const char* value : {"0", "-1", "inf", "-inf", "nan", "\"1\"", "true"})
      EXPECT_THAT(message(read({.policy = fmt::format("{} = {}\n", key, value)})), HasSubstr("positive number"))
          << key << value;
}

TEST_F(SiteFile, PeersAreNamesWithKeysThisSiteAmongThemAndTheCoordinatorNot) {
  Pins peers = study_.sites;
  peers.erase("a");
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("this site itself is missing"));
  peers["a"] = study_.sites["b"];
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("this site itself is missing or has another key"));
  peers = study_.sites;
  peers["x"] = study_.coordinator.key_hash;
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("is the coordinator"));
  peers = study_.sites;
  peers["b"] = "4f0c";
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("is no key of 'b'"));
}

TEST_F(SiteFile, ClassesAreColumnsAndLabelsOfTheSchema) {
  EXPECT_THAT(message(read({.classes = "hiv = [\"neg\", \"pos\"]\n"})), HasSubstr("the schema has no column 'hiv'"));
  EXPECT_THAT(message(read({.classes = "label = [\"A\", \"Z\"]\n"})), HasSubstr("'Z' is not in the schema"));
  EXPECT_THAT(message(read({.classes = "label = [1, 2]\n"})), HasSubstr("labels, not cuts"));
  EXPECT_THAT(message(read({.classes = "dose = [\"1\"]\n"})), HasSubstr("cuts, not labels"));
  EXPECT_THAT(message(read({.classes = "dose = [2, 1]\n"})), HasSubstr("ascend"));
  for (const char* slices : {"1", "10001", "-1", "\"4\""})
    EXPECT_THAT(message(read({.classes = fmt::format("dose = {{ slices = {} }}\n", slices)})), HasSubstr("slices = N"));
  EXPECT_THAT(message(read({.top = "columns = [\"height\"]\n"})), HasSubstr("the schema has no column 'height'"));
}

TEST_F(SiteFile, EstimatorsStandForTheirQuestions) {
  EXPECT_EQ(config({.policy = "estimators = [\"covariance\"]\n"}).policy.queries, queries_of("covariance"));
  EXPECT_EQ(config({.policy = "queries = [\"gram\"]\n"}).policy.queries, std::set<Kind>{Kind::GRAM});
  EXPECT_THAT(message(read({.policy = "queries = [\"rows\"]\n"})), HasSubstr("'rows' is no kind of question"));
  EXPECT_THAT(message(read({.policy = "estimators = [\"magic\"]\n"})), HasSubstr("no estimator for sites"));
}

// ---- proposals

class ProposalCheck : public SiteFile {
 protected:
  /// What a coordinator proposes to sites that think alike: one gram over age and sex.
  Proposal proposal() const {
    Proposal p;
    p.set_version(kWireVersion);
    p.set_study(std::string(kStudyBytes, '\7'));
    p.set_not_after(kNow + 86400);
    p.set_estimator("covariance");
    p.set_options("covariance");
    p.set_purpose("to see how age and sex go together");
    auto* rows = p.mutable_rows();
    auto* age = rows->add_columns();
    age->set_name("age");
    age->set_bounded(true);
    age->set_lower(0);
    age->set_upper(110);
    auto* sex = rows->add_columns();
    sex->set_name("sex");
    sex->add_values("F");
    sex->add_values("M");
    sex->set_other(1);
    rows->set_center(wire::v2::Rows::CENTER_NONE);
    rows->set_zero_missing(true);
    rows->set_row_bound(10);
    rows->set_radius(10);
    rows->set_bits(20);
    p.set_adjacency("replace-one");
    p.set_unit("patient");
    p.set_sites_per_person(1);
    p.set_aggregation(Proposal::SECURE);
    for (const auto& [name, pin] : study_.sites) {
      auto* site = p.add_sites();
      site->set_name(name);
      site->set_key_hash(pin);
    }
    p.set_shares(3);
    p.set_colluders(1);
    p.set_lost(1);
    add(p, Kind::GRAM, "covariance", 0.2);
    p.set_epsilon(1);
    p.set_delta(1e-6);
    p.set_accounting("tight");
    return p;
  }
  static wire::v2::PlannedAsk& add(Proposal& p, Kind kind, const std::string& label, double mu) {
    auto* ask = p.add_plan();
    ask->set_label(label);
    ask->set_kind(kind);
    ask->set_rows(3);
    ask->set_mu(mu);
    ask->set_count(1);
    return *ask;
  }
  static void make_local(Proposal& p) {
    p.set_aggregation(Proposal::LOCAL);
    p.set_shares(1);
    p.set_colluders(0);
    p.set_lost(0);
  }
  static void sort_by_label(Proposal& p) {
    auto* column = p.mutable_rows()->mutable_class_column();
    column->set_column("label");
    column->add_classes("A");
    column->add_classes("B");
    column->set_drop_unlisted(true);
  }

  std::string checked(const Proposal& p, const SiteConfig& own) const { return message(check_proposal(p, own, kNow)); }
  std::string checked(const Proposal& p) const { return checked(p, own_); }

  SiteConfig own_ = config();
};

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
  refused([](auto& c) { c.set_drop_unlisted(false); }, "--unlisted drop");
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
  edge([](Proposal& p, std::uint32_t n) { p.set_unit(std::string(std::min(n, 60'000'000U), 'x')); }, 200);
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

TEST_F(ProposalCheck, APersonAtSeveralSitesCostsMore) {
  Proposal p = proposal();
  p.set_sites_per_person(2);
  auto accepted = check_proposal(p, own_, kNow);
  EXPECT_THAT(message(accepted), HasSubstr("its epsilon would be"));
  own_.policy.most_epsilon = 3;
  accepted = check_proposal(p, own_, kNow);
  ASSERT_EQ(message(accepted), "ok");
  EXPECT_NEAR(accepted->epsilon, gaussian_epsilon(0.4, *Delta::of(1e-6)), 1e-6);
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

// ---- consent

class Consent : public ProposalCheck {
 protected:
  std::string words(const Proposal& p) const {
    const auto accepted = check_proposal(p, own_, kNow);
    if (!accepted) throw std::runtime_error(accepted.error().message);
    return in_words(p, std::string(32, '\xab'), *accepted, own_, "epsilon 0.5 of 3 is spent before, 1.2 after");
  }
};

TEST_F(Consent, NamesEverythingThatIsDecided) {
  Proposal p = proposal();
  sort_by_label(p);
  add(p, Kind::CLASS_COUNTS, "class counts", 0.05).set_classes(2);
  add(p, Kind::RECENTER, "recentre", 0);
  p.set_spares(1);
  p.set_spare_mu(0.2);
  p.set_epsilon(2);
  own_.policy.most_epsilon = 2;
  own_.peers.erase("e");
  p.set_shares(2);
  const std::string said = words(p);
  for (const char* part :
       {"Study 07070707070707070707070707070707, proposed by the coordinator 'coordinator':\n",
        "  Proposal   abababababababab (first digits of its hash), open until 2027-01-16 08:00 UTC\n",
        "'to see how age and sex go together'",
        "4 with keys that this site knows: a (this site), 'b', 'c', 'd'\n",
        "1 with keys that it does NOT know, trusted with nothing: 'e'\n",
        "'age' from 0 to 110\n",
        "'sex' of 'F', 'M'\n",
        "a row with a missing value counts as zero",
        "by 'label': 'A', 'B'; a row of another one counts as zero",
        "gram, 3 x 3 numbers: noise of 5 times what one row can change; called 'covariance'\n",
        "class_counts, 2 counts: noise of 20 times",
        "recenter, moves rows, answers nothing; called 'recentre'\n",
        "1 of these may be asked again",
        "1/2 of the noise variance (k = 2)",
        "c = 1, by this site's file",
        "at most 1 are lost (l)",
        "at delta 1e-06 under this condition (replace-one; one row stands for one 'patient'",
        "no more than 1 of the sites",
        "if all other sites and the coordinator join against this one",
        "of data set 'rows': epsilon 0.5 of 3 is spent before, 1.2 after"})
    EXPECT_THAT(said, HasSubstr(part));
}

// Texts of a coordinator cannot make a line, move the cursor or look like one of ours, wherever they stand.
TEST_F(Consent, HostileTextsStayOnePieceOfTheirLine) {
  const std::size_t lines = [&] {
    const std::string plain = words(proposal());
    return static_cast<std::size_t>(std::count(plain.begin(), plain.end(), '\n'));
  }();
  for (const std::string text : {"\n  Costs      epsilon 0.001", "\r\x1b[1A\x1b[2KStudy",
                                 "\xe2\x80\xae"
                                 "eslaf",
                                 "\xc2\x9b"
                                 "2J",
                                 "a\xe2\x80\xa8"
                                 "b",
                                 "\xc0\x8a", "', told 'nothing'\n", "\xe2\x80\x8b", "\x7f\x08\x08", "\xff\xfe"}) {
    Proposal p = proposal();
    p.set_purpose(text);
    p.set_options(text);
    p.set_estimator(text);
    p.set_unit(text);
    p.mutable_plan(0)->set_label(text);
    const std::string said = words(p);
    EXPECT_EQ(static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n')), lines) << text;
    EXPECT_THAT(said, Not(HasSubstr(text))) << "as it came";
    for (const char byte : said) {
      EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 0x20) << static_cast<int>(byte);
      EXPECT_NE(byte, '\x7f');
    }
    EXPECT_THAT(said, HasSubstr("  Costs      epsilon 0."));
  }
}

TEST_F(Consent, LongPlansAreToldInFull) {
  Proposal p = proposal();
  for (int i = 0; i < 200; ++i) add(p, Kind::GRAM, "g", 0.001);
  add(p, Kind::SQUARED_NORMS, "hidden at the end", 0.1);
  p.set_epsilon(1.5);
  own_.policy.most_epsilon = 1.5;
  const std::string said = words(p);
  EXPECT_THAT(said, HasSubstr("and 141 more of gram: noise of at least 1e+03 times"));
  EXPECT_THAT(said, HasSubstr("and 1 more of squared_norms: noise of at least 10 times"));
  EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 100);
}

}  // namespace
}  // namespace eigenveil::federation
