// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"

namespace eigenveil::ledger {

/// All inside the caller's transaction.

/// Refuses files that belong to other budgets than the data set's: none is left for another by naming that.
Status refuse_other_owners(const Database& db, const Payer& payer);
Status bind_files(const Database& db, std::int64_t dataset, const FileKeys& files);

}  // namespace eigenveil::ledger
