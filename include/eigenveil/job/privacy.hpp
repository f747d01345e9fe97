#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/job/observer.hpp"
#include "eigenveil/job/rows.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil {

/// The guarantee a user asks for, and where it is charged.
struct PrivacyOptions {
  Epsilon epsilon;
  Delta delta;
  Adjacency adjacency = Adjacency::kReplaceOne;
  Accounting accounting = Accounting::kTight;
  bool use_ledger = true;
  std::string ledger;   ///< path; empty: Ledger::default_path()
  std::string dataset;  ///< empty: the data file's own record, which has no limit
};

/// A plan that has been charged and the oracle that will answer it.
struct ChargedOracle {
  std::unique_ptr<Oracle> oracle;
  PrivacyPlan plan;
  double certified_epsilon;
  bool secure;          ///< false when the noise is seeded
  bool certified;       ///< false for a paper's calibration that costs more than it claims
  std::string dataset;  ///< the ledger's name for the data; empty without a ledger
};

/// Certifies the plan, charges it, and only then makes the oracle. `purpose` is what the ledger will remember. A plan
/// that costs more than the budget is refused, unless it is a paper's own calibration: that is charged for what it
/// costs.
Result<ChargedOracle> charge(BoundedRows rows, const PrivacyPlan& plan, Calibration calibration,
                             const PrivacyOptions& privacy, const RunOptions& run, const std::string& data,
                             const std::string& purpose, Observer& observer);

/// The guarantee in plain words.
std::string guarantee_in_words(const PrivacyOptions& privacy, const ChargedOracle& charged);

/// What every manifest says of its guarantee: adjacency, budget, events, ledger, the sentence, and the warnings so far.
nlohmann::json privacy_json(const PrivacyOptions& privacy, const ChargedOracle& charged);

}  // namespace eigenveil
