// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/federation/questions.hpp"
#include "eigenveil/federation/sites.hpp"
#include "eigenveil/intake/engine.hpp"

namespace eigenveil::federation {

enum class Aggregation { kLocal, kSecure };

struct CoordinatorOptions {
  std::string listen;
  Identity identity;
  std::vector<std::string> sites;
  Pins peers;  ///< keys of the sites, learnt from the sites themselves
  Aggregation aggregation = Aggregation::kLocal;
  std::size_t colluders = 1;     ///< secure: sites that may tell what they know; a site that is curious is one
  std::size_t lost = 0;          ///< secure: sites that may be missing
  std::size_t spare_rounds = 0;  ///< secure: rounds that may be asked again when a site is lost, each charged
  std::size_t min_sites = 0;     ///< 0: all of them
  double patience_seconds = 600;
  double valid_days = 7;  ///< how long sites may be asked
  std::string journal;    ///< folder; what it has is not asked again
  std::string estimator;  ///< as sites' people know it
  std::string purpose;    ///< why, in words, for them
  Questions questions = questions_of_estimators();
  Say say;

  bool secure() const { return aggregation == Aggregation::kSecure; }
  /// k: the noise of each site has variance sigma^2 / k.
  std::size_t shares() const { return secure() ? sites.size() - colluders - lost : 1; }
};

/// Refuses options that do not go together.
Status check(const CoordinatorOptions& options);

/// Rows that sites hold: the coordinator runs the estimator and never sees one.
Result<std::shared_ptr<Engine>> federated_engine(CoordinatorOptions options);

}  // namespace eigenveil::federation
