#pragma once

#include <memory>
#include <optional>
#include <string>

#include "eigenveil/estimators/budget.hpp"
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
  Calibration calibration = Calibration::kTight;
};

/// What was charged, as a manifest tells it.
struct Charge {
  PrivacyPlan plan;
  double certified_epsilon;
  bool secure;          ///< false when the noise is seeded
  std::string dataset;  ///< the ledger's name for the data; empty without a ledger
};

/// A plan that has been charged and the oracle that will answer it.
struct ChargedOracle : Charge {
  std::unique_ptr<Oracle> oracle;
};

/// A plan that has been charged, for an oracle of another kind.
struct ChargedPlan : Charge {
  std::unique_ptr<Reservation> reservation;
  SecureRandom random;
};

/// Calibrates the plan (a paper's plan is taken as it is), certifies and charges it. `largest` is the largest
/// sensitivity, in lattice units, that an answer may have: noise that cannot be drawn for it is refused first.
Result<ChargedPlan> charge_plan(const PrivacyPlan& shape, Sensitivity largest, const PrivacyOptions& privacy,
                                const RunOptions& run, const std::string& data, const std::string& purpose,
                                Observer& observer);

/// `charge_plan`, and only then the oracle. `purpose` is what the ledger will remember.
Result<ChargedOracle> charge(BoundedRows rows, const PrivacyPlan& shape, const PrivacyOptions& privacy,
                             const RunOptions& run, const std::string& data, const std::string& purpose,
                             Observer& observer);

/// The budget alone, for estimators and the planner.
Budget budget_of(const PrivacyOptions& privacy);

/// The guarantee in plain words. A paper's noise guarantees what it was certified for, not what the paper claims.
std::string guarantee_in_words(const PrivacyOptions& privacy, const Charge& charge);

}  // namespace eigenveil
