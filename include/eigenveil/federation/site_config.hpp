#pragma once

#include "eigenveil/job/rows.hpp"
#include "wire.pb.h"

namespace eigenveil::federation {

/// A certificate, its key and the authority that both ends trust, as PEM text.
struct Identity {
  std::string authority;
  std::string certificate;
  std::string key;
  std::string name;  ///< common name of the certificate

  static Result<Identity> read(const std::string& authority, const std::string& certificate, const std::string& key);
};

/// What a site lets through without asking a person.
struct SitePolicy {
  std::vector<std::string> estimators;  ///< empty: all
  std::optional<double> most_epsilon;   ///< of one study
  double most_delta = 1e-5;             ///< of one study: a large delta would make any epsilon look small
  std::optional<double> least_noise;    ///< of any answer, in multiples of what one row can change
};

/// What a site brings to a study. Everything but the policy is the site's own affair.
struct SiteConfig {
  std::string coordinator;       ///< host:port
  std::string coordinator_name;  ///< common name that its certificate must have
  Identity identity;
  std::string data;                   ///< path
  SourceOptions source;               ///< header, delimiter, member
  std::optional<std::string> schema;  ///< the site's own bounds: a study must have the same
  std::string ledger;                 ///< empty: the default one
  std::string dataset;
  std::string state;  ///< folder of what was answered
  SitePolicy policy;
  int threads = 0;
  std::size_t memory = std::size_t{2} << 30;
  bool without_ledger = false;  ///< for tests of sums without noise, which no ledger pays for
};

/// Reads site.toml. Paths in it are relative to its folder.
Result<SiteConfig> read_site_config(const std::string& path);

/// The plan behind a proposal, or why this site refuses it, in one sentence. Nothing is read or charged.
struct Accepted {
  PrivacyPlan plan;     ///< all that is charged, spare rounds included
  PrivacyPlan asked;    ///< what the meter lets through
  std::optional<Mu> spare_mu;  ///< noise of a spare round, if there are any
  Adjacency adjacency;
  double epsilon;  ///< certified here, not believed
  RowOptions rows;
};
Result<Accepted> check_proposal(const wire::v1::Proposal& proposal, const SiteConfig& config);

/// What a person reads before saying yes.
std::string in_words(const wire::v1::Proposal& proposal, const Accepted& accepted, const SiteConfig& config);

}  // namespace eigenveil::federation
