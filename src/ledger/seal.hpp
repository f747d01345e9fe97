// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "database.hpp"

namespace eigenveil::ledger {

/// All inside the caller's transaction. Why they see every change that did not come through them: seal.proof.md.

/// The head, if its own checksum is right.
Result<Head> read_head(const Database& db);
/// Refuses a file in which any row is missing, added, changed or exchanged for an older one.
Status verify_rows(const Database& db, const Head& head);
/// The same for one row and what belongs to it.
Status verify_row(const Database& db, const RowName& row);
/// Seals the rows as they are now, and a head of a later generation than `floor` and the last.
Result<Head> seal_rows(const Database& db, Head head, const std::set<RowName>& rows, std::uint64_t floor);
/// Every row there is: for files from before seals.
Result<std::set<RowName>> all_rows(const Database& db);

}  // namespace eigenveil::ledger
