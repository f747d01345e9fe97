// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "eigenveil/base/figures.hpp"
#include "work_rows.hpp"

namespace eigenveil {
namespace {
constexpr std::array<std::string_view, 4> kReservationStates = {"reserved", "answered", "unused", "returned"};
}

std::string_view name(ReservationState state) { return kReservationStates.at(static_cast<std::size_t>(state)); }

namespace ledger {
namespace {

constexpr double kReportDelta = 1e-6;

Result<std::optional<Limit>> limit_of(const Statement& row) {
  if (row.null(1)) return std::optional<Limit>();
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(row.real(1)));
  const auto delta = EIGENVEIL_TRY(Delta::of(row.real(2)));
  return std::optional<Limit>({epsilon, delta});
}

// Which ledger, the same in all its copies; and everything about an entry but its state.
std::string mark_of(const Database& db, const std::string& dataset, const ReservationRecord& record) {
  constexpr std::size_t kLedger = 16, kEntry = 32;
  KeyedHash hash(db.key());
  hash.field("entry").number(static_cast<std::uint64_t>(record.id)).field(dataset);
  hash.field(record.created).field(record.purpose).number(record.plan.model_based ? 1 : 0);
  for (const PrivacyEvent& event : record.plan.events) hash.field(event.label).field(to_text(event));
  return to_hex(KeyedHash(db.key()).field("ledger").finish()).substr(0, kLedger) + "-" +
         to_hex(hash.finish()).substr(0, kEntry);
}

Status load_reservations(const Database& db, Account& account) {
  Statement row(db,
                "SELECT reservation.id, created, purpose, state, coalesce(model.sha256, '') FROM reservation LEFT JOIN "
                "model ON model.id = reservation.id WHERE dataset = ? ORDER BY reservation.id",
                account.id);
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return {};
    const auto plan = EIGENVEIL_TRY(load_plan(db, row.integer(0)));
    const auto state =
        std::find(kReservationStates.begin(), kReservationStates.end(), row.text(3)) - kReservationStates.begin();
    ReservationRecord record{row.integer(0), row.text(1), row.text(2), static_cast<ReservationState>(state), plan};
    record.mark = mark_of(db, account.status.budget.name, record);
    record.model = row.text(4);
    account.status.reservations.push_back(std::move(record));
    if (account.status.reservations.back().state != ReservationState::kReturned)
      account.charged.insert(account.charged.end(), plan.events.begin(), plan.events.end());
  }
}

}  // namespace

namespace {
constexpr std::string_view kPersonUnit = "person:";
}

std::string unit_of(const std::string& person) { return person.empty() ? "row" : std::string(kPersonUnit) + person; }

// Until there were people, a unit was a word that nothing followed from.
std::string person_of_unit(const std::string& unit) {
  return unit.starts_with(kPersonUnit) ? unit.substr(kPersonUnit.size()) : std::string();
}

Result<PrivacyPlan> load_plan(const Database& db, std::int64_t reservation) {
  Statement own(db,
                "SELECT model_based, dataset.adjacency, dataset.unit FROM reservation JOIN dataset ON dataset.id = "
                "reservation.dataset WHERE reservation.id = ?",
                reservation);
  EIGENVEIL_TRY(own.step());
  const auto adjacency = EIGENVEIL_TRY(adjacency_from_name(own.text(1)));
  PrivacyPlan plan(adjacency);
  plan.model_based = own.integer(0) != 0;
  plan.person = person_of_unit(own.text(2));
  Statement row(db, "SELECT mechanism, label, count FROM event WHERE reservation = ? ORDER BY position", reservation);
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return plan;
    const auto event = EIGENVEIL_TRY(event_from_text(row.text(0)));
    plan.events.push_back({row.text(1), event.mechanism, row.integer(2)});
  }
}

Result<Account> load_account(const Database& db, const std::string& name) {
  Statement row(db,
                "SELECT id, epsilon, delta, adjacency, unit, created, filter, alpha, allow_model_based, EXISTS "
                "(SELECT 1 FROM frozen WHERE frozen.id = dataset.id) FROM dataset WHERE name = ?",
                name);
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found)
    return usage_error(fmt::format("The ledger has no data set '{}'. Create it with: `eigenveil ledger create`", name));
  const auto adjacency = EIGENVEIL_TRY(adjacency_from_name(row.text(3)));
  const auto limit = EIGENVEIL_TRY(limit_of(row));
  Account account{
      row.integer(0), {static_cast<Filter::Kind>(row.integer(6)), static_cast<int>(row.integer(7))}, {}, {}};
  account.status.budget = {name, limit, adjacency, person_of_unit(row.text(4)), row.integer(8) != 0};
  account.status.created = row.text(5);
  account.status.frozen = row.integer(9) != 0;
  EIGENVEIL_TRY(load_reservations(db, account));
  auto works = EIGENVEIL_TRY(works_of(db, name));
  account.status.works = std::move(works);
  // A filter ends with the last charge it held: after a full return the data set is open again.
  if (account.charged.empty()) account.filter = {};
  return account;
}

Result<std::int64_t> insert_reservation(const Database& db, const Account& account, const PrivacyPlan& plan,
                                        const std::string& purpose) {
  if (account.charged.empty())
    EIGENVEIL_TRY(Statement(db, "UPDATE dataset SET filter = ?, alpha = ? WHERE id = ?",
                            static_cast<int>(account.filter.kind), account.filter.alpha, account.id)
                      .finish());
  EIGENVEIL_TRY(Statement(db, "INSERT INTO reservation(dataset, purpose, model_based) VALUES (?, ?, ?)", account.id,
                          purpose, std::int64_t{plan.model_based})
                    .finish());
  const std::int64_t id = sqlite3_last_insert_rowid(db.handle());
  std::int64_t position = 0;
  for (const PrivacyEvent& event : plan.events)
    EIGENVEIL_TRY(Statement(db, "INSERT INTO event VALUES (?, ?, ?, ?, ?)", id, position++, event.label,
                            to_text({event.label, event.mechanism, 1}), event.count)
                      .finish());
  return id;
}

DatasetStatus report(const Account& account) {
  DatasetStatus status = account.status;
  if (!status.budget.limit) {
    status.filter = "none: spending is recorded, not limited";
    status.spent_epsilon = recorded_epsilon(account.charged, *Delta::of(kReportDelta));
    status.spent_delta = kReportDelta;
    status.remaining_epsilon = std::numeric_limits<double>::infinity();
    status.remaining = "no limit is set";
    return status;
  }
  const Limit& limit = *status.budget.limit;
  status.filter = describe(account.filter);
  status.spent_epsilon = spent_epsilon(account.filter, limit, account.charged);
  status.spent_delta = limit.delta.value();
  status.remaining_epsilon = remaining_epsilon(account.filter, limit, account.charged);
  status.remaining =
      fmt::format("epsilon {:.4g} at delta {} for {}", status.remaining_epsilon, plain(limit.delta.value()),
                  account.charged.empty() ? "any release" : "a further Gaussian release");
  if (status.remaining_epsilon <= 0) status.remaining = "nothing";
  return status;
}

}  // namespace ledger
}  // namespace eigenveil
