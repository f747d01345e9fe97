// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/privacy/event.hpp"
#include "wire.pb.h"

namespace eigenveil::federation {

/// All that a coordinator hears when a site that could take part does not: whether a person said no, the budget did,
/// the disk is full or a row cannot be read. Which of them it was, the site's own terminal says.
constexpr const char* kCannotTakePart = "this site does not take part in the study; its own terminal says why";

/// What a site lets through at all, whoever approves. Everything counts per study.
struct SitePolicy {
  std::set<wire::v2::Kind> queries;  ///< kinds of questions that a plan may hold
  bool local = true;                 ///< every answer with the full noise before it leaves
  bool secure = true;                ///< masked answers, each with a share of the noise
  double most_epsilon = 1;           ///< under the stated condition
  double most_epsilon_alone = 5;     ///< if all other sites and the coordinator join against this one
  double most_delta = 1e-5;          ///< a large delta would make any epsilon look small
  double least_noise = 1;        ///< of all answers to one kind of question, under the condition, in multiples of what
                                 ///< one row can change, or one person with rows at several sites
  std::uint32_t most_days = 30;  ///< how long a proposal may stay open
};

/// Sizes, so that no ask takes memory, disk or time that the site did not plan for.
struct SiteLimits {
  std::uint32_t grid = 512;     ///< points of one grid
  std::uint32_t label = 200;    ///< bytes of one label or name
  std::uint32_t purpose = 500;  ///< bytes of purpose, and of options
  std::uint32_t asks = 10'000;  ///< planned asks and spare rounds
  std::uint32_t sites = 64;
  std::uint32_t columns = 10'000;  ///< features of one row, and directions or columns of one map
  std::uint32_t classes = 1'000;
  std::uint64_t message = std::uint64_t{64} << 20;  ///< bytes of one message from the coordinator
};

/// How a column sorts rows into classes: by its labels, or by cuts of a number.
struct ClassRule {
  std::vector<std::string> labels;
  std::vector<double> cuts;
};

/// What a site brings to a study, from its own file alone.
struct SiteConfig {
  std::string coordinator;       ///< host:port
  std::string coordinator_name;  ///< in its certificate
  std::string coordinator_key;   ///< hash of its key
  Identity identity;
  Pins peers;                   ///< sites whose keys this one knows, itself among them
  std::uint32_t colluders = 1;  ///< how many of the peers may tell what they know; >= 1

  std::string data;                          ///< path
  SourceOptions source;                      ///< header, delimiter, member
  Schema schema;                             ///< every column that a study may use, with its bounds or values
  std::vector<std::string> columns;          ///< features that a study chooses from; empty: it uses all that are no
                                             ///< class column
  std::map<std::string, ClassRule> classes;  ///< columns that a study may use as classes
  bool drop_unlisted = true;                 ///< a row of another label counts as the zero row of no class
  MissingPolicy missing = MissingPolicy::kZeroRow;
  std::optional<RowBound> row_bound;   ///< if there is one, a study has the same
  std::string person;                  ///< column that says whose a row is, for studies that protect people
  bool missing_person_is_own = false;  ///< a row without an id is a person of its own; false: the study is refused

  std::string ledger;  ///< empty: the default one
  std::string dataset;
  std::string state;             ///< folder of what was answered
  std::uint32_t quantum_ms = 0;  ///< answers leave at multiples of it; 0: at once
  SitePolicy policy;
  SiteLimits limits;
  int threads = 0;
  std::size_t memory = std::size_t{2} << 30;
};

/// Reads site.toml. Paths in it are relative to its folder. Keys that are not known are refused.
Result<SiteConfig> read_site_config(const std::string& path);

/// What an estimator may ask, private means and bounds included; nothing if it is none that sites know.
std::set<wire::v2::Kind> queries_of(const std::string& estimator);

/// A proposal that this site could take part in: what it costs and how its rows are read, all by the site's own file
/// and accountant.
struct Accepted {
  PrivacyPlan plan;  ///< all that is charged: for one person, spare rounds included
  double epsilon;    ///< under the stated condition
  double epsilon_alone;
  RowOptions rows;
};

/// Why this site refuses a proposal, in one sentence that the coordinator may hear: it depends on the proposal and the
/// site's file, never on a row or the ledger. Nothing is read or charged. `now`: seconds since 1970.
Result<Accepted> check_proposal(const wire::v2::Proposal& proposal, const SiteConfig& config, std::int64_t now);

/// What a person reads before saying yes to `hash`, the proposal's. `budget`: the data set's spending before and after,
/// in words. Every line is ours; what the coordinator wrote stands in quotes, escaped, on a line of its own kind.
std::string in_words(const wire::v2::Proposal& proposal, const std::string& hash, const Accepted& accepted,
                     const SiteConfig& config, const std::string& budget);

}  // namespace eigenveil::federation
