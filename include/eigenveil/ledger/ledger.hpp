#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

namespace ledger {
class Database;
}

/// A data set whose privacy is being spent. Without a limit its spending is recorded but not limited.
struct DatasetBudget {
  struct Limit {
    Epsilon epsilon;
    Delta delta;
  };
  std::string name;  ///< 1 to 200 bytes without control characters
  std::optional<Limit> limit;
  Adjacency adjacency = Adjacency::kReplaceOne;
  std::string unit = "row";        ///< what one row stands for: a patient, a customer
  bool allow_model_based = false;  ///< pays also for guarantees that rest on a model of the rows
};

enum class ReservationState {
  kReserved,  ///< charged; nothing is known about answers (a crash leaves it here, and it stays spent)
  kAnswered,  ///< charged; at least one answer may have been computed
  kUnused,    ///< charged; its oracle recorded that it never answered anything
  kReturned,  ///< was kUnused, then given back by `release_unused`
};

std::string_view name(ReservationState state);

struct ReservationRecord {
  std::int64_t id;
  std::string created;  ///< UTC, ISO 8601
  std::string purpose;
  ReservationState state;
  PrivacyPlan plan;
};

struct DatasetStatus {
  DatasetBudget budget;
  std::string created;
  std::string filter;  ///< in words: which filter holds the budget, or "open" before the first reservation
  std::vector<ReservationRecord> reservations;
  double spent_epsilon;      ///< of everything charged, at the budget's delta (1e-6 without a limit): a report
  double spent_delta;        ///< the delta that spent_epsilon is stated at
  double remaining_epsilon;  ///< what a further Gaussian release may ask for at that delta; infinite without a limit
  std::string remaining;     ///< the same in words
};

/// Proof that a plan has been charged (or that the user said to do without a ledger). An oracle cannot be made
/// without one, so no answer comes before its charge.
class Reservation {
 public:
  virtual ~Reservation() = default;
  virtual const PrivacyPlan& plan() const = 0;
  virtual bool in_ledger() const = 0;
  /// Called by the oracle once, before its first answer is computed; on disk before it returns. An error means: do
  /// not answer.
  virtual Status begin_answering() = 0;
  /// Called by the oracle when it closes without ever having answered; no answer may begin afterwards. When the
  /// ledger cannot record it, the reservation stays spent.
  virtual void close_unused() = 0;
};

/// A plan that no ledger charges: the release says so.
std::unique_ptr<Reservation> reserve_without_ledger(PrivacyPlan plan);

/// Durable budgets in one SQLite file. Every method opens its own transaction; several processes may share a file,
/// and several threads a Ledger. Which plans fit a budget, and why that holds for plans that depend on earlier
/// answers: src/ledger/filter.proof.md.
class Ledger {
 public:
  /// Opens or creates the file and its folder. A file that is no ledger, or cannot be written, is refused. A lock
  /// that another process holds is waited for as long as `busy_timeout`.
  static Result<Ledger> open(const std::string& path,
                             std::chrono::milliseconds busy_timeout = std::chrono::seconds(30));
  /// $XDG_DATA_HOME/eigenveil/ledger.db, or ~/.local/share/eigenveil/ledger.db.
  static std::string default_path();

  /// Refuses a name that exists already.
  Status create(const DatasetBudget& budget);
  /// Keeps a data set of that name as it is, whatever its budget.
  Status create_if_missing(const DatasetBudget& budget);
  Result<std::vector<DatasetStatus>> list();
  Result<DatasetStatus> show(const std::string& name);

  /// Charges the whole plan in one transaction, on disk before it returns; or refuses and says what remains.
  Result<std::unique_ptr<Reservation>> reserve(const std::string& dataset, const PrivacyPlan& plan,
                                               const std::string& purpose);

  /// As `reserve`, for work that survives its process: a purpose that paid for this plan before is not charged again,
  /// and its reservation goes on. The purpose must be unique to the work. One that was closed unused is refused.
  Result<std::unique_ptr<Reservation>> reserve_once(const std::string& dataset, const PrivacyPlan& plan,
                                                    const std::string& purpose);

  /// Gives back every reservation of the data set whose oracle recorded that it never answered; says how many.
  Result<int> release_unused(const std::string& name);

 private:
  explicit Ledger(std::shared_ptr<ledger::Database> db) : db_(std::move(db)) {}
  Result<std::unique_ptr<Reservation>> charge(const std::string& dataset, const PrivacyPlan& plan, const std::string& purpose,
                                              bool once);
  Result<bool> insert(const DatasetBudget& budget);  // whether the name was new
  std::shared_ptr<ledger::Database> db_;
};

}  // namespace eigenveil
