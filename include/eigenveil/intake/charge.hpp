// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/privacy/budget.hpp"
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
  std::string dataset;  ///< empty: the one with a budget that the file belongs to, or the file's own record
  Calibration calibration = Calibration::kTight;
  bool auto_delta = false;  ///< delta follows the number of rows, which is public: `delta_for`
};

/// The entry of the ledger that a release was charged to, and its budget before and after. Other releases may be
/// charged meanwhile: these are the figures of the moments before and after this one.
struct LedgerEntry {
  std::int64_t id = 0;
  std::string ledger = {};  ///< its file, wherever the process goes meanwhile. Not published
  std::string created;      ///< UTC, ISO 8601
  std::string purpose;
  std::string unit;              ///< "row" or "person": what the budget pays for
  std::string mark = {};         ///< tells it from every entry of every other ledger
  std::uint64_t generation = 0;  ///< of the ledger afterwards: a copy that has not come so far is older than the model
  std::optional<DatasetBudget::Limit> limit;
  double spent_before = 0;  ///< epsilon at the delta of the limit
  double spent_after = 0;   ///< likewise
  double remaining = 0;     ///< what a further Gaussian release may ask for
};

/// What was charged, as a manifest tells it.
struct Charge {
  PrivacyPlan plan;
  double certified_epsilon;
  bool secure;                                      ///< false when the noise is seeded
  std::string dataset;                              ///< the ledger's name for the data; empty without a ledger
  std::shared_ptr<nlohmann::json> federation = {};  ///< who holds the rows, if several do; complete after the fit
  bool limited = false;                             ///< the data set has a budget
  std::vector<PrivacyEvent> spares = {};            ///< charged beside the plan, and asked only if sites are lost
  std::optional<LedgerEntry> entry = {};            ///< none without a ledger, and of noise that is not secret
};

/// The private files behind a release: which data set pays depends on them.
class PrivateFiles {
 public:
  PrivateFiles(const std::string& path) { add(path); }  // NOLINT(google-explicit-constructor)
  /// `people`: of these the one whose lines say whose the rows are; empty: none.
  PrivateFiles(const RowFiles& files, std::string people = {})  // NOLINT(google-explicit-constructor)
      : told_(files.told), people_(std::move(people)) {
    for (const std::string& path : files.paths) add(path);
  }
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& people() const { return people_; }
  /// False: the rows lie in files that nobody can tell.
  bool told() const { return told_; }

 private:
  void add(const std::string& path) {
    if (!path.empty()) paths_.push_back(path);
  }
  std::vector<std::string> paths_;
  bool told_ = true;
  std::string people_;
};

/// The ledger that counts. Who charges makes none: a name that was mistyped would be a ledger without limits. The usual
/// one alone is made where it is missing, for a record that no budget limits.
Result<Ledger> ledger_of(const PrivacyOptions& privacy);

/// Refuses a ledger that is not there, rows of a pipe or of files that nobody can tell where nobody says who pays, and
/// a pipe that says whose rows are: a ledger knows files by what is in them, and pipes not at all.
Status check_payer(const PrivacyOptions& privacy, const PrivateFiles& data);

/// How noisy an answer was. Public: it follows from the plan, the row bound and what was released before.
struct NotedNoise {
  std::string label;
  std::size_t entries;  ///< of the answer
  double deviation;     ///< of the noise in one of them, in the units of the sum
};

/// A plan that has been charged and the oracle that will answer it.
struct ChargedOracle : Charge {
  std::unique_ptr<Oracle> oracle;
  std::shared_ptr<std::vector<NotedNoise>> noise = {};  ///< of the Gaussian answers so far; of a label the last one
};

/// A plan that has been charged, for an oracle of another kind.
struct ChargedPlan : Charge {
  std::unique_ptr<Reservation> reservation;
  SecureRandom random;
};

/// A plan with its noise, and what it is certified for.
struct CertifiedPlan {
  PrivacyPlan plan;
  double epsilon;
};

/// Calibrates the plan (a paper's plan is taken as it is) and certifies it. `largest` is the largest sensitivity, in
/// lattice units, that an answer may have: noise that cannot be drawn for it is refused.
Result<CertifiedPlan> certify(const PrivacyPlan& draft, Sensitivity largest, const PrivacyOptions& privacy);

/// No query over rows of a lattice moves a sum by more.
Sensitivity largest_sensitivity(const Lattice& lattice);

/// Certifies the plan and charges it.
Result<ChargedPlan> charge_plan(const PrivacyPlan& draft, Sensitivity largest, const PrivacyOptions& privacy,
                                const RunOptions& run, const PrivateFiles& data, const std::string& purpose,
                                Observer& observer);

/// A work that has been charged, just now (`fresh`) or by an earlier process.
struct ChargedWork : Charge {
  std::unique_ptr<Work> work;
  bool fresh;
  SecureRandom random;
};

/// Charges a certified plan for work that survives its process: `Ledger::begin_work`.
Result<ChargedWork> charge_work(CertifiedPlan certified, const PrivacyOptions& privacy, const RunOptions& run,
                                const PrivateFiles& data, const std::string& key, const WorkFacts& facts,
                                Observer& observer);

/// The budget alone, for estimators and forecasts.
Budget budget_of(const PrivacyOptions& privacy);

}  // namespace eigenveil
