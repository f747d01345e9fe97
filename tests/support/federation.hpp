// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <thread>

#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/coordinator.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/site.hpp"
#include "tests/support/parties.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {

inline void need(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

/// An authority for a test program, and parties as they are asked for.
class Certificates {
 public:
  static Certificates& shared() {
    static Certificates one;
    return one;
  }
  federation::Identity identity(const std::string& name) {
    const auto role = name == "coordinator" ? federation::Role::kCoordinator : federation::Role::kSite;
    if (!std::filesystem::exists(folder() + "/" + name + ".crt")) make_party(folder(), name, role);
    return identity_of(folder(), name, role);
  }
  std::string pin(const std::string& name) { return identity(name).party.key_hash; }
  std::string folder() const { return folder_.file("ca"); }
  static std::string site(std::size_t i) { return "site-" + std::to_string(i); }

 private:
  Certificates() { need(federation::make_authority(folder(), "test", {})); }
  TempDir folder_;
};

inline std::set<wire::v2::Kind> all_kinds() {
  std::set<wire::v2::Kind> kinds;
  for (int kind = 1; kind <= 12; ++kind) kinds.insert(static_cast<wire::v2::Kind>(kind));
  return kinds;
}

/// Numeric columns between -bound and bound.
inline Schema numeric_schema(const std::vector<std::string>& columns, double bound) {
  Schema schema;
  for (const std::string& name : columns) schema.columns.push_back({name, NumericColumn{-bound, bound}});
  return schema;
}

/// A line of numbers that read as they are.
template <class Row>
std::string csv_line(const Row& row) {
  std::string line;
  for (const double value : row) line += fmt::format("{}{}", line.empty() ? "" : ",", value);
  return line;
}

/// Takes part in one study.
inline void take_part(const federation::SiteConfig& config) {
  federation::ServeOptions options{[](const std::string&) { return true; }, [](const std::string&) {}, true, 20};
  Observer silent;
  (void)federation::serve(config, options, silent);
}

inline void let_everything_through(federation::SiteConfig& config) {
  config.source.header = HeaderRule::kYes;
  config.missing = MissingPolicy::kError;
  config.dataset = "rows";
  config.threads = 1;
  config.policy.queries = all_kinds();
  config.policy.most_epsilon = config.policy.most_epsilon_alone = 1e9;
  config.policy.least_noise = 1e-300;
}

/// A site that lets everything through that the protocol allows, with a ledger of its own in `folder`.
inline federation::SiteConfig generous_site(const std::string& name, const std::string& folder, const Schema& schema,
                                            Adjacency adjacency = Adjacency::kReplaceOne) {
  federation::SiteConfig config;
  config.coordinator_name = "coordinator";
  config.coordinator_key = Certificates::shared().pin("coordinator");
  config.identity = Certificates::shared().identity(name);
  config.peers = {{name, config.identity.party.key_hash}};
  config.data = folder + "/" + name + ".csv";
  config.schema = schema;
  let_everything_through(config);
  config.ledger = folder + "/" + name + ".db";
  config.state = folder + "/state-" + name;
  auto ledger = Ledger::open(config.ledger);
  if (!ledger) throw std::runtime_error(ledger.error().message);
  need(ledger->create_if_missing({.name = "rows", .limit = {}, .adjacency = adjacency}));
  return config;
}

/// Sites, each with a share of the rows of a CSV file and in a thread of this process, that dial a coordinator.
class TestSites {
 public:
  using Run = std::function<void(const federation::SiteConfig&)>;

  /// Row i of the lines goes to site i mod n; `header` names the columns, of which the schema has the features.
  TestSites(std::size_t n, const std::string& header, const Schema& schema, const std::vector<std::string>& lines,
            Run run = take_part)
      : run_(std::move(run)) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::string name = Certificates::site(i);
      std::ofstream out(folder_.file(name + ".csv"));
      out << header << "\n";
      for (std::size_t row = i; row < lines.size(); row += n) out << lines[row] << "\n";
      configs.push_back(generous_site(name, folder_.file("."), schema));
      peers_[name] = Certificates::shared().pin(name);
    }
    for (federation::SiteConfig& config : configs) config.peers = peers_;
  }
  ~TestSites() {
    for (std::thread& thread : threads_) thread.join();
  }

  /// What the coordinator says tells its port; the sites dial then.
  federation::CoordinatorOptions coordinator(federation::Aggregation aggregation, const std::string& estimator) {
    federation::CoordinatorOptions options;
    options.listen = "127.0.0.1:0";
    options.identity = Certificates::shared().identity("coordinator");
    options.peers = peers_;
    for (const auto& [name, pin] : peers_) options.sites.push_back(name);
    options.aggregation = aggregation;
    options.journal = folder_.file("journal");
    options.estimator = estimator;
    options.purpose = "a test";
    options.patience_seconds = 30;
    options.say = [this](const std::string& line) {
      const std::string before = "waiting at port ";
      const std::size_t at = line.find(before);
      if (at == std::string::npos || !threads_.empty()) return;
      start(std::stoi(line.substr(at + before.size())));
    };
    return options;
  }

  std::vector<federation::SiteConfig> configs;

 private:
  void start(int port) {
    for (federation::SiteConfig config : configs)
      threads_.emplace_back([this, config, port]() mutable {
        config.coordinator = "127.0.0.1:" + std::to_string(port);
        run_(config);
      });
  }
  Run run_;
  TempDir folder_;
  federation::Pins peers_;
  std::vector<std::thread> threads_;
};

/// Proposes the plan as it is, over those rows and with those questions by label, and waits for the sites.
inline Result<ChargedOracle> charge(federation::CoordinatorOptions options, const RowOptions& rows,
                                    const std::map<std::string, federation::Question>& questions,
                                    const PrivacyPlan& plan) {
  options.questions = [questions](const std::string& label, wire::v2::Kind,
                                  std::uint32_t) -> std::optional<federation::Question> {
    const auto found = questions.find(label);
    return found == questions.end() ? std::nullopt : std::optional(found->second);
  };
  const auto engine = federation::federated_engine(options);
  if (!engine) return engine.error();
  auto opened = open_data(rows);
  if (!opened) return opened.error();
  Observer silent;
  auto held = (*engine)->hold(rows, *opened, {}, 0, silent);
  if (!held) return held.error();
  PrivacyOptions privacy{*Epsilon::of(900), *Delta::of(1e-6)};
  privacy.calibration = Calibration::kPaper;
  return (*held)->charge({plan, privacy, RunOptions(), std::string(), "test"}, silent);
}

}  // namespace eigenveil::test
