// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/types.hpp"
#include "eigenveil/ledger/payer.hpp"
#include "eigenveil/ledger/reservation.hpp"
#include "eigenveil/ledger/work.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// A data set whose privacy is being spent. Without a limit its spending is recorded but not limited.
struct DatasetBudget {
  struct Limit {
    Epsilon epsilon;
    Delta delta;
  };
  std::string name;  ///< 1 to 200 bytes without control characters
  std::optional<Limit> limit;
  Adjacency adjacency = Adjacency::kReplaceOne;
  std::string person = {};         ///< the column that says whose a row is: it pays for people. Empty: for rows
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
  std::string mark =
      {};  ///< keyed hash of what never changes of it: no entry of another ledger, or of another past, has it
  std::string model = {};  ///< SHA-256 of the file that was written for it; empty: none was recorded
};

struct DatasetStatus {
  DatasetBudget budget;
  std::string created;
  std::string filter;  ///< in words: which filter holds the budget, or "open" before the first reservation
  std::vector<ReservationRecord> reservations;
  std::vector<WorkRecord> works;
  bool frozen = false;       ///< an older copy of the ledger came back: it pays for nothing until that is accepted
  double spent_epsilon;      ///< of everything charged, at the budget's delta (1e-6 without a limit): a report
  double spent_delta;        ///< the delta that spent_epsilon is stated at
  double remaining_epsilon;  ///< what a further Gaussian release may ask for at that delta; infinite without a limit
  std::string remaining;     ///< the same in words
};

/// Who counts what a release spends: made by `Ledger::none`, `Ledger::at` and `Ledger::standard`.
struct LedgerChoice {
  bool used;
  std::string path;
  std::string dataset;  ///< empty: the one with a budget that the file belongs to, or a record without a limit
};

/// Durable budgets in one SQLite file. Every method opens its own transaction; several processes may share a file,
/// and several threads a Ledger. Which plans fit a budget, and why that holds for plans that depend on earlier
/// answers: src/ledger/filter.proof.md.
class Ledger {
 public:
  /// Opens or creates the file and its folder. A file that is no ledger, or cannot be written, is refused. A lock
  /// that another process holds is waited for as long as `busy_timeout`. One whose rows do not match their checksums
  /// is refused; an older copy of one is frozen. PATH.anchor remembers the last generation: as a link to another disk
  /// it outlives a restored machine. Links to the ledger are followed, so that there is one key, one anchor and one
  /// lock; a ledger that has a second name (a hard link) is refused.
  static Result<Ledger> open(const std::string& path,
                             std::chrono::milliseconds busy_timeout = std::chrono::seconds(30));
  /// The same, of a file that is there: whoever does not make a ledger for all to see makes none, or a name that was
  /// mistyped would be one without limits.
  static Result<Ledger> open_existing(const std::string& path);
  /// $XDG_DATA_HOME/eigenveil/ledger.db, or ~/.local/share/eigenveil/ledger.db.
  static std::string default_path();

  /// Nobody counts: the release says so.
  static LedgerChoice none() { return {false, {}, {}}; }
  /// A data set of the ledger in that file pays.
  static LedgerChoice at(std::string path, std::string dataset) { return {true, std::move(path), std::move(dataset)}; }
  /// The ledger at `default_path()`. Without a data set: the one with a budget that the file of the rows belongs to, or
  /// else a record without a limit, under `path_key` or as "rows in memory". Rows in memory belong to no file, so
  /// a data set with a budget has to be named for them.
  static LedgerChoice standard(std::string dataset = {}) { return {true, default_path(), std::move(dataset)}; }

  /// Refuses a name that exists already. The files belong to the data set from the beginning; the one that is called as
  /// its people are (who.txt, for the person "who") is the one list of people that it knows.
  Status create(const DatasetBudget& budget, const FileKeys& files = {});
  /// Keeps a data set of that name as it is, whatever its budget.
  Status create_if_missing(const DatasetBudget& budget);
  Result<std::vector<DatasetStatus>> list();
  Result<DatasetStatus> show(const std::string& name);

  /// Charges the whole plan and binds the payer's files in one transaction, on disk before it returns; or refuses,
  /// says what remains and changes nothing. Files that belong to other budgets alone are refused.
  Result<std::unique_ptr<Reservation>> reserve(const Payer& payer, const PrivacyPlan& plan, const std::string& purpose);

  /// As `reserve`, for work that survives its process. One transaction: a key that is new is charged for its whole
  /// plan; one that is there gives its record, if every fact, plan and data set agree, and is otherwise lost for ever
  /// and refused. Refused too: a work that another process holds, and one that has ended.
  Result<Begun> begin_work(const Payer& payer, const PrivacyPlan& plan, const std::string& purpose,
                           const std::string& key, const WorkFacts& facts,
                           std::optional<std::chrono::system_clock::time_point> expires = {});
  Result<std::optional<WorkRecord>> find_work(const std::string& key);

  /// Records which file was written for an entry: the first one stays. Called after the file is there, so that a run
  /// that is cut off in between has a file that the ledger does not know, and nothing worse.
  Status record_model(std::int64_t entry, const std::string& sha256);
  struct Entry {
    std::string dataset;
    ReservationRecord record;
  };
  Result<std::optional<Entry>> find_entry(std::int64_t id);
  /// Goes up with every change of the file: an older copy has a lower one.
  Result<std::uint64_t> generation();

  /// Gives back every reservation of the data set whose oracle recorded that it never answered; says how many.
  Result<int> release_unused(const std::string& name);

  /// Thaws a data set of a restored ledger. `spent` (none: nothing) is what its releases cost, at the data set's delta,
  /// since the copy was taken; it is charged as a Gaussian answer, whether the budget allows it or not.
  Status accept_restore(const std::string& name, std::optional<Epsilon> spent);
  /// How many rows were checked against their checksums. (`open` and every transaction that charges do the same.)
  Result<std::int64_t> verify();

  /// A copy as of one moment, whatever is being charged meanwhile, and its key beside it (PATH.key), both for the owner
  /// alone. Brought back in the place of a ledger that has gone on, it is an older copy and frozen.
  Status backup(const std::string& path, Existing existing = Existing::kRefuse);

  /// Reads the files and folders; nothing is stored.
  Result<FileKeys> hash_files(const std::vector<std::string>& paths) const;
  /// Whether any file belongs to a data set. If none does, long files need not be hashed to find their budgets.
  Result<bool> has_files();
  /// The data sets with a budget that any of the files belongs to, by its path or by what is in it. A folder belongs
  /// where any of its files does, and a file where its folder does.
  Result<std::set<std::string>> budgets_of(const FileKeys& files);
  /// Keyed hash of a path, links followed, as `hash_files` has it: a ledger tells nobody what files are called.
  std::string path_key(const std::string& path) const;
  /// `named_content_key` under a key of this ledger: pins data for the length of a run.
  Result<std::string> content_key(const std::string& path) const;

 private:
  explicit Ledger(std::shared_ptr<ledger::Database> db) : db_(std::move(db)) {}
  Result<bool> insert(const DatasetBudget& budget, const FileKeys& files);  // whether the name was new
  std::shared_ptr<ledger::Database> db_;
};

}  // namespace eigenveil
