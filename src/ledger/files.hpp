// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"

namespace eigenveil::ledger {

/// All inside the caller's transaction.

/// Refuses files that belong to other budgets than the data set's: none is left for another by naming that.
Status refuse_other_owners(const Database& db, const Payer& payer);
/// Refuses a list of people (a file whose lines say whose the pairs are) that is not among the data set's files as it
/// is, where that has any: with other ids a person's rows would be several people's, for the price of one.
Status refuse_other_people(const Database& db, const Account& account, const Payer& payer);
Status bind_files(const Database& db, std::int64_t dataset, const FileKeys& files);

}  // namespace eigenveil::ledger
