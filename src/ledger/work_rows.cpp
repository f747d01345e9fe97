// SPDX-License-Identifier: Apache-2.0
#include "work_rows.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace eigenveil {
namespace {
constexpr std::array<std::string_view, 7> kWorkStates = {"reserved", "met",     "answering", "closed",
                                                         "ended",    "expired", "lost"};
}

std::string_view name(WorkState state) { return kWorkStates.at(static_cast<std::size_t>(state)); }

bool is_final(WorkState state) { return state >= WorkState::kClosed; }

namespace ledger {
namespace {

Status load_pinned(const Database& db, WorkRow& work) {
  Statement row(db, "SELECT name, value FROM pinned WHERE work = ?", work.id);
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return {};
    work.record.pinned[row.text(0)] = row.text(1);
  }
}

Status settle(const Database& db, std::int64_t reservation, const char* state) {
  EIGENVEIL_TRY(
      Statement(db, "UPDATE reservation SET state = ? WHERE id = ?", std::string(state), reservation).finish());
  return {};
}

}  // namespace

Result<WorkRow> load_work(const Database& db, std::int64_t id) {
  Statement row(db,
                "SELECT work.reservation, key, work.state, generation, step, met, head, expires, dataset.name, "
                "reservation.state = 'returned' FROM work JOIN reservation ON reservation.id = "
                "work.reservation JOIN dataset ON dataset.id = reservation.dataset WHERE work.id = ?",
                id);
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found) return internal_error("The ledger has lost a work");
  auto plan = EIGENVEIL_TRY(load_plan(db, row.integer(0)));
  WorkRow work{id, row.integer(0), WorkRecord(std::move(plan))};
  WorkRecord& record = work.record;
  record.key = row.text(1);
  record.state =
      static_cast<WorkState>(std::find(kWorkStates.begin(), kWorkStates.end(), row.text(2)) - kWorkStates.begin());
  record.generation = static_cast<std::uint64_t>(row.integer(3));
  record.step = static_cast<std::uint64_t>(row.integer(4));
  record.met = row.text(5);
  record.head = row.text(6);
  record.expires = row.text(7);
  record.dataset = row.text(8);
  record.refunded = row.integer(9) != 0;
  EIGENVEIL_TRY(load_pinned(db, work));
  return work;
}

Result<std::optional<WorkRow>> find_work(const Database& db, const std::string& key) {
  Statement row(db, "SELECT id FROM work WHERE key = ?", key);
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found) return std::optional<WorkRow>();
  auto work = EIGENVEIL_TRY(load_work(db, row.integer(0)));
  return std::optional<WorkRow>(std::move(work));
}

Result<std::vector<WorkRecord>> works_of(const Database& db, const std::string& dataset) {
  std::vector<WorkRecord> works;
  Statement row(db,
                "SELECT work.id FROM work JOIN reservation ON reservation.id = work.reservation JOIN dataset ON "
                "dataset.id = reservation.dataset WHERE dataset.name = ? ORDER BY work.id",
                dataset);
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return works;
    auto work = EIGENVEIL_TRY(load_work(db, row.integer(0)));
    works.push_back(std::move(work.record));
  }
}

Result<std::int64_t> insert_work(const Database& db, std::int64_t reservation, const WorkRecord& record) {
  EIGENVEIL_TRY(Statement(db, "INSERT INTO work(key, reservation, generation, expires) VALUES (?, ?, ?, ?)", record.key,
                          reservation, static_cast<std::int64_t>(record.generation), record.expires)
                    .finish());
  const std::int64_t id = sqlite3_last_insert_rowid(db.handle());
  for (const auto& [name, value] : record.pinned)
    EIGENVEIL_TRY(Statement(db, "INSERT INTO pinned VALUES (?, ?, ?)", id, name, Bytes{value}).finish());
  return id;
}

Status store_work(const Database& db, const WorkRow& before, const WorkRecord& now) {
  const bool answered = before.record.state == WorkState::kAnswering;
  if (now.state == WorkState::kAnswering && !answered) EIGENVEIL_TRY(settle(db, before.reservation, "answered"));
  if (is_final(now.state) && now.state != WorkState::kLost && !answered) {
    EIGENVEIL_TRY(settle(db, before.reservation, "unused"));
    EIGENVEIL_TRY(settle(db, before.reservation, "returned"));
  }
  return Statement(db, "UPDATE work SET state = ?, step = ?, met = ?, head = ? WHERE id = ?",
                   std::string(name(now.state)), static_cast<std::int64_t>(now.step), Bytes{now.met}, Bytes{now.head},
                   before.id)
      .finish();
}

bool expired(const WorkRecord& record) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return !record.expires.empty() && record.expires <= fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

Result<bool> expire_works(const Database& db) {
  bool any = false;
  Statement row(db,
                "SELECT id FROM work WHERE state IN ('reserved', 'met', 'answering') AND expires <> '' AND expires <= "
                "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')");
  std::vector<std::int64_t> ids;
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) break;
    ids.push_back(row.integer(0));
  }
  for (const std::int64_t id : ids) {
    const auto work = EIGENVEIL_TRY(load_work(db, id));
    WorkRecord now = work.record;
    now.state = WorkState::kExpired;
    EIGENVEIL_TRY(store_work(db, work, now));
    any = true;
  }
  return any;
}

Error ended(const WorkRecord& record) {
  const char* how = "has come to its end";
  if (record.state == WorkState::kEnded) how = "was broken off";
  if (record.state == WorkState::kExpired) how = "has expired";
  if (record.state == WorkState::kLost) how = "is lost: the ledger and the state folder disagreed about it";
  return budget_refused(
      fmt::format("'{}' {}, and answers nothing any more; its charge {}. Begin anew, under another number.", record.key,
                  how, record.refunded ? "was given back, as nothing had been answered" : "stays"));
}

}  // namespace ledger
}  // namespace eigenveil
