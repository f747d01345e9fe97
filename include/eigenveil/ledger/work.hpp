// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "eigenveil/ledger/reservation.hpp"

namespace eigenveil {

namespace ledger {
class Database;
class WorkLock;
}  // namespace ledger

/// How far a study or a training run has come. The last four are final: nothing follows them.
enum class WorkState {
  kReserved,   ///< its whole plan is charged
  kMet,        ///< and what it rests on (a study's roster) is fixed
  kAnswering,  ///< an answer may have left: the charge never comes back
  kClosed,     ///< came to its end
  kEnded,      ///< was broken off
  kExpired,    ///< its time ran out
  kLost,       ///< ledger and state folder disagree: what was answered is not known
};

std::string_view name(WorkState state);
bool is_final(WorkState state);

/// What is fixed when a work is reserved (hashes of its proposal, keys, data, modules), by name.
struct WorkFacts {
  std::map<std::string, std::string> pinned;
};

/// A work as the ledger knows it.
struct WorkRecord {
  explicit WorkRecord(PrivacyPlan charged) : plan(std::move(charged)) {}

  std::string key;  ///< unique in the ledger: a study's number, a run's
  WorkState state = WorkState::kReserved;
  std::uint64_t generation = 0;  ///< the ledger's when the work was reserved
  std::uint64_t step = 0;        ///< the last one that may have been answered
  std::string met;               ///< what `meet` fixed
  std::string head;              ///< what `advance` said last: the hash of everything asked up to that step
  std::map<std::string, std::string> pinned;
  PrivacyPlan plan;
  std::string expires;  ///< UTC, ISO 8601; empty: never
  std::string dataset;  ///< that pays for it
  bool refunded = false;
};

/// A charged plan whose answers outlive the process that gives them. As long as it lives nobody else, in this process
/// or another, holds the same work. Every change is on disk before it returns, and an error means: do not answer.
/// Why there is one answer per step, whatever is killed or restored: src/ledger/work.proof.md.
class Work final : public Reservation {
 public:
  ~Work() override;
  const WorkRecord& record() const { return record_; }
  const PrivacyPlan& plan() const override { return record_.plan; }
  bool in_ledger() const override { return db_ != nullptr; }

  /// Reserved -> met, once. The same head again is fine, another is refused.
  Status meet(const std::string& head);
  /// -> answering. The step is the next one; or the last one with the head it had, which changes nothing.
  Status advance(std::uint64_t step, const std::string& head);
  /// Ends the work, for ever. What never came to answering is given back in the same transaction, unless it is lost.
  Status close(WorkState final_state);

  /// -> answering, at the step that it is at: for an oracle that keeps no steps.
  Status begin_answering() override;
  /// A process that answered nothing is no end of its work.
  void close_unused() override {}

 private:
  friend class Ledger;
  friend std::unique_ptr<Work> work_without_ledger(PrivacyPlan plan, std::string key, WorkFacts facts);
  Work(WorkRecord record, std::shared_ptr<ledger::Database> db, std::int64_t id,
       std::unique_ptr<ledger::WorkLock> lock);
  Status change(const std::function<Status(WorkRecord&)>& decide);

  WorkRecord record_;
  std::shared_ptr<ledger::Database> db_;  // empty without a ledger
  std::int64_t id_;
  std::unique_ptr<ledger::WorkLock> lock_;
};

struct Begun {
  std::unique_ptr<Work> work;
  bool fresh;  ///< charged just now; otherwise it was there, and the caller must have the state that belongs to it
};

/// A work that no ledger charges or remembers: the release says so.
std::unique_ptr<Work> work_without_ledger(PrivacyPlan plan, std::string key, WorkFacts facts);

}  // namespace eigenveil
