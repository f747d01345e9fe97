#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/event.hpp"

struct sqlite3;

namespace eigenveil {

/// A data set whose privacy is being spent. Without a budget its spending is recorded but not limited.
struct DatasetBudget {
  struct Limit {
    Epsilon epsilon;
    Delta delta;
  };
  std::string name;
  std::optional<Limit> limit;
  Adjacency adjacency = Adjacency::kReplaceOne;
  std::string unit = "row";  ///< what one row stands for: a patient, a customer
};

enum class ReservationState {
  kReserved,  ///< charged; nothing is known about answers (a crash leaves it here, and it stays spent)
  kAnswered,  ///< charged; at least one answer may have been computed
  kUnused,    ///< charged; its oracle recorded that it never answered anything
  kReturned,  ///< was kUnused, then given back by `release_unused`
};

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
  double spent_epsilon;  ///< certified epsilon of everything spent, at the budget's delta (1e-6 without a budget)
  double spent_delta;
  std::string remaining;  ///< in words: what a further release may still spend
};

/// Proof that a plan has been charged (or that the user said to do without a ledger). An oracle cannot be made
/// without one, so no answer comes before its charge.
class Reservation {
 public:
  virtual ~Reservation() = default;
  virtual const PrivacyPlan& plan() const = 0;
  virtual bool in_ledger() const = 0;
  /// Called by the oracle, durably, before its first answer is computed.
  virtual Status begin_answering() = 0;
  /// Called by the oracle when it closes without ever having answered.
  virtual void close_unused() = 0;
};

/// A plan that no ledger charges: the release says so.
std::unique_ptr<Reservation> reserve_without_ledger(PrivacyPlan plan);

/// Durable budgets in one SQLite file. Every method opens its own transaction; several processes may share a file.
class Ledger {
 public:
  /// Opens or creates the file and its folder. A file that is no ledger, or cannot be written, is refused.
  static Result<Ledger> open(const std::string& path);
  /// $XDG_DATA_HOME/eigenveil/ledger.db, or ~/.local/share/eigenveil/ledger.db.
  static std::string default_path();

  Ledger(Ledger&&) noexcept = default;
  Ledger& operator=(Ledger&&) noexcept = default;

  /// Refuses a name that exists already.
  Status create(const DatasetBudget& budget);
  Result<std::vector<DatasetStatus>> list();
  Result<DatasetStatus> show(const std::string& name);

  /// Charges the whole plan in one transaction, on disk before it returns; or refuses and says what remains.
  Result<std::unique_ptr<Reservation>> reserve(const std::string& dataset, Adjacency adjacency, const PrivacyPlan& plan,
                                               const std::string& purpose);

  /// Gives back every reservation of the data set whose oracle recorded that it never answered; says how many.
  Result<int> release_unused(const std::string& name);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Ledger(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}
  std::string path_;
  std::shared_ptr<sqlite3> db_;
};

}  // namespace eigenveil
