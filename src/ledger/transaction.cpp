// SPDX-License-Identifier: Apache-2.0
#include "seal.hpp"

namespace eigenveil::ledger {

Status Transaction::begin_unverified() {
  EIGENVEIL_TRY(db_.run("BEGIN IMMEDIATE"));
  EIGENVEIL_TRY(db_.check_name());
  db_.touched_.clear();
  return {};
}

Status Transaction::begin(Verify verify) {
  EIGENVEIL_TRY(begin_unverified());
  head_ = EIGENVEIL_TRY(read_head(db_));
  if (verify == Verify::kAll) EIGENVEIL_TRY(verify_rows(db_, head_));
  const auto seen = EIGENVEIL_TRY(read_anchor(db_.anchor_, head_.mark.generation > 0));
  if (seen == head_.mark) return {};
  // A commit whose process ended before it raised the anchor: the head names the one it followed.
  if (head_.mark.generation == seen.generation + 1 && head_.previous == seen.checksum)
    return raise_anchor(db_.anchor_, head_.mark);
  EIGENVEIL_TRY(freeze(seen));
  return begin(verify);
}

Status Transaction::freeze(const Mark& seen) {
  EIGENVEIL_TRY(verify_rows(db_, head_));
  EIGENVEIL_TRY(db_.run("INSERT OR IGNORE INTO frozen(id) SELECT id FROM dataset"));
  EIGENVEIL_TRY(db_.run("UPDATE work SET state = 'lost' WHERE state IN ('reserved', 'met', 'answering')"));
  floor_ = seen.generation;
  // With nothing to freeze there is still a generation to catch up with.
  head_ = EIGENVEIL_TRY(seal_rows(db_, head_, db_.touched_, floor_));
  EIGENVEIL_TRY(db_.run("COMMIT"));
  return raise_anchor(db_.anchor_, head_.mark);
}

Status Transaction::commit() {
  if (db_.touched_.empty()) return db_.run("COMMIT");
  if (head_.mark == Mark{}) {  // a file that has just got its tables
    head_ = EIGENVEIL_TRY(read_head(db_));
  }
  head_ = EIGENVEIL_TRY(seal_rows(db_, head_, db_.touched_, floor_));
  EIGENVEIL_TRY(db_.run("COMMIT"));
  return raise_anchor(db_.anchor_, head_.mark);
}

Transaction::~Transaction() {
  if (sqlite3_get_autocommit(db_.handle()) == 0) (void)db_.run("ROLLBACK");
}

}  // namespace eigenveil::ledger
