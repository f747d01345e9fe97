// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "eigenveil/base/figures.hpp"
#include "eigenveil/base/user_folder.hpp"
#include "eigenveil/privacy/least_delta.hpp"
#include "files.hpp"
#include "work_rows.hpp"

namespace eigenveil {

using ledger::Account;
using ledger::Database;
using ledger::Events;
using ledger::Filter;
using ledger::Statement;
using ledger::Transaction;

namespace {

Status check_plan(const PrivacyPlan& plan) {
  if (plan.events.empty()) return usage_error("The plan asks for no answer: there is nothing to reserve");
  for (const PrivacyEvent& event : plan.events) {
    EIGENVEIL_TRY(validate(event));
    if (std::holds_alternative<PoissonGaussianEvent>(event.mechanism) && plan.adjacency != Adjacency::kAddRemoveOne)
      return usage_error(
          fmt::format("'{}' answers over a Poisson sample, which is accounted for add-remove-one "
                      "neighbours only: use `adjacency` add-remove-one",
                      event.label));
  }
  return {};
}

Error refusal(const Account& account, const PrivacyPlan& plan) {
  const DatasetStatus status = report(account);
  const ledger::Limit& limit = *status.budget.limit;
  const auto own = epsilon_of(plan.events, limit.delta);
  const std::string asked = own.ok() && std::isfinite(*own) ? fmt::format("epsilon {:.4g}", *own) : "no finite epsilon";
  return budget_refused(
      fmt::format("The budget of data set '{}' does not allow this release: it asks for {} at delta {}; of epsilon {}, "
                  "{:.4g} has been spent (filter: {}); what remains: {}. Ask for no more than that, or give back what "
                  "was never used with: eigenveil ledger release-unused NAME",
                  status.budget.name, asked, plain(limit.delta.value()), limit.epsilon.value(), status.spent_epsilon,
                  status.filter, status.remaining));
}

std::string protects(const std::string& person) {
  return person.empty() ? "one row" : fmt::format("one person, with all their rows (column '{}')", person);
}

// An epsilon per visit is none per patient, and the two do not add up.
Error other_unit(const std::string& dataset, const std::string& own, const PrivacyPlan& plan) {
  const std::string remedy = own.empty() ? "leave `person` out" : fmt::format("give `person` {}", own);
  return budget_refused(
      fmt::format("The budget of data set '{}' protects {}, but this release would protect {}. What one costs says "
                  "nothing about the other: {}, or use a data set of its own",
                  dataset, protects(own), protects(plan.person), remedy));
}

// Refuses the plan, or settles the filter that holds the account from now on. Nothing is charged here.
Status admit(Account& account, const PrivacyPlan& plan) {
  if (!account.status.budget.limit) return {};
  const ledger::Limit& limit = *account.status.budget.limit;
  if (account.charged.empty()) {
    account.filter = ledger::choose_filter(limit, plan.events);
    return account.filter.kind == Filter::Kind::kOpen ? refusal(account, plan) : Status{};
  }
  Events events = account.charged;
  events.insert(events.end(), plan.events.begin(), plan.events.end());
  return fits(account.filter, limit, events) ? Status{} : refusal(account, plan);
}

// `db` is empty for a plan that no ledger charges.
class PlanReservation final : public Reservation {
 public:
  PlanReservation(PrivacyPlan plan, std::shared_ptr<Database> db, std::int64_t id)
      : plan_(std::move(plan)), db_(std::move(db)), id_(id) {}
  const PrivacyPlan& plan() const override { return plan_; }
  bool in_ledger() const override { return db_ != nullptr; }
  std::int64_t entry() const override { return id_; }
  Status begin_answering() override { return settle("answered"); }
  void close_unused() override { (void)settle("unused"); }

 private:
  // In memory first: whatever the ledger manages to record, nothing follows a first attempt.
  Status settle(const std::string& state) {
    if (std::exchange(settled_, true))
      return internal_error("A reservation answers for one oracle only; this one was begun or closed before");
    if (!in_ledger()) return {};
    Transaction transaction(*db_);
    EIGENVEIL_TRY(transaction.begin());
    EIGENVEIL_TRY(Statement(*db_, "UPDATE reservation SET state = ? WHERE id = ?", state, id_).finish());
    if (sqlite3_changes(db_->handle()) != 1) return internal_error("The ledger has lost the reservation");
    return transaction.commit();
  }

  PrivacyPlan plan_;
  std::shared_ptr<Database> db_;
  std::int64_t id_;
  bool settled_ = false;
};

}  // namespace

std::unique_ptr<Reservation> reserve_without_ledger(PrivacyPlan plan) {
  return std::make_unique<PlanReservation>(std::move(plan), nullptr, 0);
}

std::string Ledger::default_path() { return (user_folder() / "ledger.db").string(); }

Result<Ledger> Ledger::open_existing(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return bad_input(fmt::format(
        "there is no ledger at '{}': give the right file, or make one with `eigenveil ledger create`", path));
  return open(path);
}

Result<Ledger> Ledger::open(const std::string& path, std::chrono::milliseconds busy_timeout) {
  auto db = EIGENVEIL_TRY(Database::open(path, busy_timeout));
  return Ledger(std::move(db));
}

Result<bool> Ledger::insert(const DatasetBudget& budget, const FileKeys& files) {
  const bool control =
      std::any_of(budget.name.begin(), budget.name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (budget.name.empty() || budget.name.size() > 200 || control)
    return usage_error("A data set's name has 1 to 200 bytes and no control characters; please choose another");
  if (budget.limit && !budget.person.empty() && budget.limit->delta.value() < kLeastLimitOfPeople)
    return usage_error("with `person` a `delta` below 1e-12 cannot be promised for all releases together");
  std::optional<double> epsilon;
  std::optional<double> delta;
  if (budget.limit) {
    epsilon = budget.limit->epsilon.value();
    delta = budget.limit->delta.value();
  }
  FileKeys own = files;
  EIGENVEIL_TRY(ledger::name_people(own, budget.person));
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  if (budget.limit) EIGENVEIL_TRY(ledger::refuse_while_frozen(*db_));
  EIGENVEIL_TRY(Statement(*db_,
                          "INSERT INTO dataset(name, epsilon, delta, adjacency, unit, allow_model_based) "
                          "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO NOTHING",
                          budget.name, epsilon, delta, std::string(eigenveil::name(budget.adjacency)),
                          ledger::unit_of(budget.person), std::int64_t{budget.allow_model_based})
                    .finish());
  const bool inserted = sqlite3_changes(db_->handle()) == 1;
  if (inserted) EIGENVEIL_TRY(ledger::bind_files(*db_, sqlite3_last_insert_rowid(db_->handle()), own));
  EIGENVEIL_TRY(transaction.commit());
  return inserted;
}

Status Ledger::create(const DatasetBudget& budget, const FileKeys& files) {
  const auto inserted = EIGENVEIL_TRY(insert(budget, files));
  if (inserted) return {};
  return usage_error(fmt::format(
      "The ledger has a data set '{}' already, and a budget never changes. Choose another name.", budget.name));
}

Status Ledger::create_if_missing(const DatasetBudget& budget) {
  EIGENVEIL_TRY(insert(budget, {}));
  return {};
}

Result<std::vector<DatasetStatus>> Ledger::list() {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto expired = EIGENVEIL_TRY(ledger::expire_works(*db_));
  std::vector<DatasetStatus> all;
  Statement names(*db_, "SELECT name FROM dataset ORDER BY name");
  for (;;) {
    const auto more = EIGENVEIL_TRY(names.step());
    if (!more) break;
    const auto account = EIGENVEIL_TRY(load_account(*db_, names.text(0)));
    all.push_back(report(account));
  }
  if (expired) EIGENVEIL_TRY(transaction.commit());
  return all;
}

Result<DatasetStatus> Ledger::show(const std::string& name) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto expired = EIGENVEIL_TRY(ledger::expire_works(*db_));
  const auto account = EIGENVEIL_TRY(load_account(*db_, name));
  if (expired) EIGENVEIL_TRY(transaction.commit());
  return report(account);
}

Result<std::unique_ptr<Reservation>> Ledger::reserve(const Payer& payer, const PrivacyPlan& plan,
                                                     const std::string& purpose) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  EIGENVEIL_TRY(ledger::expire_works(*db_));
  const auto id = EIGENVEIL_TRY(ledger::charge(*db_, payer, plan, purpose));
  EIGENVEIL_TRY(transaction.commit());
  return std::unique_ptr<Reservation>(std::make_unique<PlanReservation>(plan, db_, id));
}

Result<std::int64_t> ledger::charge(const Database& db, const Payer& payer, const PrivacyPlan& plan,
                                    const std::string& purpose) {
  EIGENVEIL_TRY(check_plan(plan));
  const std::string& dataset = payer.dataset;
  auto account = EIGENVEIL_TRY(load_account(db, dataset));
  EIGENVEIL_TRY(refuse_frozen(account));
  EIGENVEIL_TRY(refuse_other_owners(db, payer));
  if (const Adjacency own = account.status.budget.adjacency; own != plan.adjacency)
    return usage_error(
        fmt::format("The budget of data set '{}' counts {} neighbours, but the release is planned for {}: "
                    "give `adjacency` {}, or use a data set of its own",
                    dataset, name(own), name(plan.adjacency), name(own)));
  if (const std::string& own = account.status.budget.person; own != plan.person) return other_unit(dataset, own, plan);
  EIGENVEIL_TRY(refuse_other_people(db, account, payer));
  if (plan.model_based && !account.status.budget.allow_model_based)
    return budget_refused(
        fmt::format("Data set '{}' does not allow a model-based guarantee, which holds only if its rows are drawn from "
                    "the model. Use `guarantee` strict, or a data set created with `allow_model_based`",
                    dataset));
  EIGENVEIL_TRY(admit(account, plan));
  if (account.status.budget.limit) EIGENVEIL_TRY(bind_files(db, account.id, payer.files));
  return insert_reservation(db, account, plan, purpose);
}

Status Ledger::record_model(std::int64_t entry, const std::string& sha256) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  EIGENVEIL_TRY(Statement(*db_, "INSERT INTO model VALUES (?, ?) ON CONFLICT(id) DO NOTHING", entry, sha256).finish());
  return transaction.commit();
}

Result<std::optional<Ledger::Entry>> Ledger::find_entry(std::int64_t id) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  Statement row(*db_,
                "SELECT dataset.name FROM reservation JOIN dataset ON dataset.id = reservation.dataset WHERE "
                "reservation.id = ?",
                id);
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found) return std::optional<Entry>();
  const auto account = EIGENVEIL_TRY(load_account(*db_, row.text(0)));
  for (const ReservationRecord& record : account.status.reservations)
    if (record.id == id) return std::optional(Entry{row.text(0), record});
  return internal_error("The ledger has lost the reservation");
}

// Nobody writes while a transaction is open, so that the pages are those of one moment.
Status Ledger::backup(const std::string& path, Existing existing) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> image(sqlite3_serialize(db_->handle(), "main", &size, 0),
                                                              sqlite3_free);
  if (image == nullptr) return internal_error("There is no memory for a copy of the ledger");
  const FileModes modes{Readers::kOwner, existing};
  // A key without its ledger opens nothing; a ledger without its key is lost.
  EIGENVEIL_TRY(write_file(path + ".key", db_->key(), modes));
  return write_file(path, {reinterpret_cast<const char*>(image.get()), static_cast<std::size_t>(size)},  // NOLINT
                    modes);
}

Result<int> Ledger::release_unused(const std::string& name) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto account = EIGENVEIL_TRY(load_account(*db_, name));
  EIGENVEIL_TRY(
      Statement(*db_, "UPDATE reservation SET state = 'returned' WHERE dataset = ? AND state = 'unused'", account.id)
          .finish());
  const int returned = sqlite3_changes(db_->handle());
  EIGENVEIL_TRY(transaction.commit());
  return returned;
}

}  // namespace eigenveil
