// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/work.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "eigenveil/ledger/ledger.hpp"
#include "seal.hpp"
#include "work_lock.hpp"
#include "work_rows.hpp"

namespace eigenveil {

using ledger::Database;
using ledger::Transaction;
using ledger::WorkLock;
using ledger::WorkRow;

namespace {

Status check_key(const std::string& key, const WorkFacts& facts) {
  const auto plain = [](const std::string& text) {
    return !text.empty() && text.size() <= 200 &&
           std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  };
  if (!plain(key)) return usage_error("A work's key has 1 to 200 bytes and no control characters");
  for (const auto& [name, value] : facts.pinned)
    if (!plain(name)) return usage_error("A pinned fact's name has 1 to 200 bytes and no control characters");
  return {};
}

// Which fact of the ledger's is another now; empty if all agree.
std::string difference(const WorkRecord& there, const WorkRecord& now) {
  for (const auto& [name, value] : there.pinned) {
    const auto found = now.pinned.find(name);
    if (found == now.pinned.end() || found->second != value) return name;
  }
  if (there.pinned.size() != now.pinned.size()) return "number of pinned facts";
  if (there.dataset != now.dataset) return "data set";
  if (there.expires != now.expires) return "time of expiry";
  if (there.plan != now.plan) return "plan";
  return {};
}

Status end_as(Transaction& transaction, const Database& db, const WorkRow& work, WorkState state) {
  WorkRecord now = work.record;
  now.state = state;
  EIGENVEIL_TRY(store_work(db, work, now));
  return transaction.commit();
}

}  // namespace

Work::Work(WorkRecord record, std::shared_ptr<Database> db, std::int64_t id, std::unique_ptr<WorkLock> lock)
    : record_(std::move(record)), db_(std::move(db)), id_(id), lock_(std::move(lock)) {}

Work::~Work() = default;

std::unique_ptr<Work> work_without_ledger(PrivacyPlan plan, std::string key, WorkFacts facts) {
  WorkRecord record(std::move(plan));
  record.key = std::move(key);
  record.pinned = std::move(facts.pinned);
  return std::unique_ptr<Work>(new Work(std::move(record), nullptr, 0, nullptr));
}

// Applies `decide` to the work as it is on disk, where others may have ended it meanwhile.
Status Work::change(const std::function<Status(WorkRecord&)>& decide) {
  WorkRecord now = record_;
  if (!in_ledger()) {
    if (is_final(now.state)) return ledger::ended(now);
    EIGENVEIL_TRY(decide(now));
    record_ = std::move(now);
    return {};
  }
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin(Transaction::Verify::kHead));
  const auto row = EIGENVEIL_TRY(ledger::load_work(*db_, id_));
  EIGENVEIL_TRY(ledger::verify_row(*db_, {"work", id_}));
  EIGENVEIL_TRY(ledger::verify_row(*db_, {"reservation", row.reservation}));
  if (is_final(row.record.state)) return ledger::ended(record_ = row.record);
  if (ledger::expired(row.record)) {
    EIGENVEIL_TRY(end_as(transaction, *db_, row, WorkState::kExpired));
    record_.state = WorkState::kExpired;
    return ledger::ended(record_);
  }
  now = row.record;
  EIGENVEIL_TRY(decide(now));
  EIGENVEIL_TRY(ledger::store_work(*db_, row, now));
  EIGENVEIL_TRY(transaction.commit());
  record_ = std::move(now);
  return {};
}

Status Work::meet(const std::string& head) {
  if (head.empty()) return internal_error("What a work meets has a name");
  return change([&](WorkRecord& work) -> Status {
    if (!work.met.empty() && work.met != head)
      return budget_refused(fmt::format("'{}' has met others before: what it rests on is fixed", work.key));
    if (work.met.empty() && work.step > 0)
      return internal_error(fmt::format("'{}' has answered before it met anybody", work.key));
    work.met = head;
    if (work.state == WorkState::kReserved) work.state = WorkState::kMet;
    return {};
  });
}

Status Work::advance(std::uint64_t step, const std::string& head) {
  return change([&](WorkRecord& work) -> Status {
    if (step == work.step && step > 0 && head == work.head) return {};
    if (step != work.step + 1)
      return budget_refused(
          fmt::format("'{}' is at step {}: it goes on with step {} and nothing else, but was asked for {}{}", work.key,
                      work.step, work.step + 1, step, step == work.step ? " with another question than before" : ""));
    work.step = step;
    work.head = head;
    work.state = WorkState::kAnswering;
    return {};
  });
}

Status Work::begin_answering() {
  return change([](WorkRecord& work) -> Status {
    work.state = WorkState::kAnswering;
    return {};
  });
}

Status Work::close(WorkState final_state) {
  if (!is_final(final_state)) return internal_error("A work closes in a final state");
  return change([&](WorkRecord& work) -> Status {
    work.refunded = in_ledger() && work.state != WorkState::kAnswering && final_state != WorkState::kLost;
    work.state = final_state;
    return {};
  });
}

Result<Begun> Ledger::begin_work(const Payer& payer, const PrivacyPlan& plan, const std::string& purpose,
                                 const std::string& key, const WorkFacts& facts,
                                 std::optional<std::chrono::system_clock::time_point> expires) {
  EIGENVEIL_TRY(check_key(key, facts));
  WorkRecord wanted(plan);
  wanted.key = key;
  wanted.pinned = facts.pinned;
  wanted.dataset = payer.dataset;
  if (expires)
    wanted.expires = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(*expires)));

  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto there = EIGENVEIL_TRY(ledger::find_work(*db_, key));
  if (there) {
    const WorkRow& work = *there;
    if (is_final(work.record.state)) return ledger::ended(work.record);
    auto lock = EIGENVEIL_TRY(WorkLock::take(db_->path(), work.id, key));
    if (const std::string other = difference(work.record, wanted); !other.empty()) {
      EIGENVEIL_TRY(end_as(transaction, *db_, work, WorkState::kLost));
      return budget_refused(
          fmt::format("The ledger paid for '{}' with another {} than it has now. Two sets of answers for one charge "
                      "cannot be told apart from here, so it is lost: its charge stays, and it answers nothing more.",
                      key, other));
    }
    if (ledger::expired(work.record)) {
      EIGENVEIL_TRY(end_as(transaction, *db_, work, WorkState::kExpired));
      WorkRecord now = work.record;
      now.state = WorkState::kExpired;
      return ledger::ended(now);
    }
    return Begun{std::unique_ptr<Work>(new Work(work.record, db_, work.id, std::move(lock))), false};
  }
  if (ledger::expired(wanted)) return budget_refused(fmt::format("'{}' has expired before it began", key));
  EIGENVEIL_TRY(ledger::expire_works(*db_));
  const auto reservation = EIGENVEIL_TRY(ledger::charge(*db_, payer, plan, purpose));
  wanted.generation = transaction.head().mark.generation + 1;
  const auto id = EIGENVEIL_TRY(ledger::insert_work(*db_, reservation, wanted));
  auto lock = EIGENVEIL_TRY(WorkLock::take(db_->path(), id, key));
  EIGENVEIL_TRY(transaction.commit());
  return Begun{std::unique_ptr<Work>(new Work(std::move(wanted), db_, id, std::move(lock))), true};
}

Result<std::optional<WorkRecord>> Ledger::find_work(const std::string& key) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto expired = EIGENVEIL_TRY(ledger::expire_works(*db_));
  const auto work = ledger::find_work(*db_, key);
  if (!work) return work.error();
  if (expired) EIGENVEIL_TRY(transaction.commit());
  return *work ? std::optional<WorkRecord>((*work)->record) : std::nullopt;
}

Result<std::uint64_t> Ledger::generation() {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  return transaction.head().mark.generation;
}

}  // namespace eigenveil
