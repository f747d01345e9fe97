// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/site_config.hpp"
#include "tests/support/parties.hpp"

namespace eigenveil::test {

using federation::Party;
using federation::Pins;
using federation::Role;
using federation::SiteConfig;
using federation::Validity;
using wire::v2::Kind;
using wire::v2::Proposal;

constexpr std::int64_t kNow = 1'800'000'000;  // the tests' own clock
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().message;
}

/// Five sites and a coordinator; this site is "a" and knows the keys of all of them.
struct Study {
  Study() {
    const Validity long_enough{.until = 3650LL * 86400};
    if (!federation::make_authority(folder(), "study", long_enough)) throw std::runtime_error("no authority");
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

/// Writes and reads a site's file.
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
  Result<SiteConfig> read(const Parts& parts) { return federation::read_site_config(write(parts)); }
  SiteConfig config(const Parts& parts = plain()) {
    auto config = read(parts);
    if (!config) throw std::runtime_error(config.error().message);
    return *std::move(config);
  }

  Study& study_ = Study::shared();
};

/// Checks proposals against it.
class ProposalCheck : public SiteFile {
 protected:
  /// What a coordinator proposes to sites that think alike: one gram over age and sex.
  Proposal proposal() const {
    Proposal p;
    p.set_version(federation::kWireVersion);
    p.set_study(std::string(federation::kStudyBytes, '\7'));
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
    p.set_unit("row");
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

  std::string checked(const Proposal& p, const SiteConfig& own) const {
    return message(federation::check_proposal(p, own, kNow));
  }
  std::string checked(const Proposal& p) const { return checked(p, own_); }

  SiteConfig own_ = config();
};

}  // namespace eigenveil::test
