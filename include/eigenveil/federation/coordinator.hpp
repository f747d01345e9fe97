#pragma once

#include "eigenveil/federation/sites.hpp"
#include "eigenveil/job/engine.hpp"

namespace eigenveil::federation {

enum class Aggregation { kLocal, kSecure };

struct CoordinatorOptions {
  std::string listen;
  Identity identity;
  std::vector<std::string> sites;
  Aggregation aggregation = Aggregation::kLocal;
  std::size_t tolerate = 0;      ///< secure: sites that may be curious or missing
  std::size_t spare_rounds = 0;  ///< secure: rounds that may be asked again when a site is lost, each charged
  std::size_t min_sites = 0;     ///< 0: all of them
  double patience_seconds = 600;
  std::string journal;    ///< folder; what it has is not asked again
  std::string estimator;  ///< as sites' policies know it
  Say say;
};

/// Refuses options that do not go together.
Status check(const CoordinatorOptions& options);

/// Rows that sites hold: the coordinator runs the estimator and never sees one.
Result<std::shared_ptr<Engine>> federated_engine(CoordinatorOptions options);

}  // namespace eigenveil::federation
