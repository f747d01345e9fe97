// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"

namespace eigenveil::ledger {

struct WorkRow {
  std::int64_t id;
  std::int64_t reservation;
  WorkRecord record;
};

/// All inside the caller's transaction.
Result<std::optional<WorkRow>> find_work(const Database& db, const std::string& key);
Result<WorkRow> load_work(const Database& db, std::int64_t id);
Result<std::vector<WorkRecord>> works_of(const Database& db, const std::string& dataset);
Result<std::int64_t> insert_work(const Database& db, std::int64_t reservation, const WorkRecord& record);

/// Stores what may change of a work. The first step to answering settles its reservation; an end that never came so far
/// gives it back, unless the work is lost.
Status store_work(const Database& db, const WorkRow& before, const WorkRecord& now);

/// Ends every open work whose time has run out; says whether there was any.
Result<bool> expire_works(const Database& db);

bool expired(const WorkRecord& record);
/// Why nothing can follow: for a work that has ended.
Error ended(const WorkRecord& record);

}  // namespace eigenveil::ledger
